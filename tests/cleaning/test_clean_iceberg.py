"""Iceberg tables after a clean-up: every snapshot that is kept can be read, and of expired ones nothing is left."""

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import AssertTableUUID, SetPartitionStatisticsUpdate

import zonal.cleaning.quarantine
from simulation.events import local
from simulation.iceberg_ledger import Iceberg1, Iceberg3, IcebergLedger
from support.cleaning import WEEK, cleaned, everything, left_by_run, now, quarantined
from support.cluster_tables import Iceberg, parts_of, row_counts, telemetry
from zonal.errors import CommitUnknownError, TableError, ZonalError
from zonal.verbs.clean import clean

ACTS = ("append", "append", "delete", "overwrite", "replace_part", "add_column", "evolve", "set_property", "recluster",
        "positions", "branch", "rollback", "tag")  # fmt: skip


class Tagging:
    """A ledger whose other writers also make tags."""

    def tag(self):
        table = self.table.table
        if (now_at := table.metadata.current_snapshot_id) is not None:
            table.manage_snapshots().create_tag(now_at, f"t{len(self.done)}").commit()


class First(Tagging, Iceberg1):
    pass


class Second(Tagging, IcebergLedger):
    pass


def rows_at(table, snapshot_id):
    return row_counts(table.scan(snapshot_id=snapshot_id).to_arrow())


def files_of(table, snapshots):
    """Everything that snapshots refer to, by PyIceberg."""
    found = set()
    for snapshot in snapshots:
        found.add(local(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            found.add(local(manifest.manifest_path))
            found |= {local(e.data_file.file_path) for e in manifest.fetch_manifest_entry(table.io)}
    return found


def kept_at(table, cutoff):
    """Snapshots that any moment since the cutoff can be read by, and those of branches and tags."""
    moment = cutoff.timestamp() * 1000
    log = sorted((entry.timestamp_ms, entry.snapshot_id) for entry in table.metadata.snapshot_log)
    kept = {number for time, number in log if time > moment} | {
        number for _, number in [e for e in log if e[0] <= moment][-1:]
    }
    kept |= {snapshot.snapshot_id for snapshot in table.snapshots() if snapshot.timestamp_ms > moment}
    return kept | {ref.snapshot_id for ref in table.metadata.refs.values()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [First, Second, Iceberg3])
def test_kept_snapshots_read_as_before_and_exactly_the_rest_is_moved(tmp_path, kind, seed):
    draw = Random(f"{kind.__name__} {seed}")  # noqa: S311
    ledger = kind(Random(seed), tmp_path).make()  # noqa: S311
    acts = [act for act in ACTS if act in kind.ACTS or (act == "tag" and hasattr(kind, act))]
    moments = []
    for _ in range(7):
        moments.append(now())
        ledger.act(draw.choice(acts))
    cutoff = draw.choice([*moments, now()])
    home = ledger.table
    table = home.table
    before = {snapshot.snapshot_id: rows_at(table, snapshot.snapshot_id) for snapshot in table.snapshots()}
    known, must = files_of(table, table.snapshots()), kept_at(table, cutoff)
    content = everything(home.root)

    plan = cleaned(home, cutoff, yes=False)
    assert everything(home.root) == content, "a dry run changes nothing"
    done = cleaned(home, cutoff)

    table = home.table
    kept = {snapshot.snapshot_id for snapshot in table.snapshots()}
    assert must <= kept
    assert set(done.snapshots) == set(before) - kept == set(plan.snapshots)
    gone = {path for path in known - files_of(table, table.snapshots()) if path.startswith(f"{home.root}/")}
    assert {str(home.root / file.path) for file in done.files} == gone
    assert set(plan.files) == set(done.files)
    assert {number: rows_at(table, number) for number in kept} == {number: before[number] for number in kept}
    if done.run is not None:
        cleaned(home, undo=done.run)
        assert content.items() <= everything(home.root).items()


# --- what stays ------------------------------------------------------------------------------------------------------


def grown(tmp_path, *, version=2, properties=None):
    """A table of four snapshots, of which the last replaced all files, and the moment after that."""
    home = Iceberg(tmp_path, version=version).make(parts_of(telemetry(60), 3), properties=properties)
    home.cluster(by=["x"])
    return home, now()


def ids(home):
    return [snapshot.snapshot_id for snapshot in home.table.snapshots()]


def test_tags_and_branches_keep_their_snapshots(tmp_path):
    home, _ = grown(tmp_path)
    first, second, third, last = ids(home)
    home.table.manage_snapshots().create_tag(first, "month-end").create_branch(third, "audit").commit()
    done = cleaned(home, now())
    assert set(done.snapshots) == {second}
    assert home.table.scan(snapshot_id=first).to_arrow().num_rows == 20
    assert home.table.scan(snapshot_id=third).to_arrow().num_rows == 60
    assert {*home.table.metadata.refs} == {"main", "month-end", "audit"}
    assert ids(home) == [first, third, last]


def test_a_branch_keeps_what_its_own_settings_ask_for(tmp_path):
    home, _ = grown(tmp_path)
    first, second, third, last = ids(home)
    home.table.manage_snapshots().create_branch(third, "few", min_snapshots_to_keep=2).commit()
    home.table.manage_snapshots().create_branch(
        last, "long", max_snapshot_age_ms=int(5 * WEEK.total_seconds() * 1000)
    ).commit()
    cleaned(home, now())
    assert ids(home) == [first, second, third, last], "the second branch keeps five weeks"
    home.table.manage_snapshots().remove_branch("long").commit()
    assert set(cleaned(home, now()).snapshots) == {first}


@pytest.mark.parametrize(
    ("properties", "expired"), [({"history.expire.min-snapshots-to-keep": "3"}, 1), ({}, 3)], ids=["three", "one"]
)
def test_a_table_keeps_its_least_number_of_snapshots(tmp_path, properties, expired):
    home, done = grown(tmp_path, properties=properties)
    assert len(cleaned(home, done).snapshots) == expired


def test_what_a_table_promises_expires_only_on_demand(tmp_path):
    age = str(int(4 * WEEK.total_seconds() * 1000))
    home, done = grown(tmp_path, properties={"history.expire.max-snapshot-age-ms": age})
    with pytest.raises(ZonalError, match="max-snapshot-age-ms"):
        cleaned(home, done)
    assert len(ids(home)) == 4
    assert len(cleaned(home, done, expire="7d", ignore_retention=True).snapshots) == 3


def test_a_table_whose_files_may_be_anothers_is_refused(tmp_path):
    home, done = grown(tmp_path, properties={"gc.enabled": "false"})
    with pytest.raises(TableError, match=r"gc\.enabled"):
        cleaned(home, done)
    with pytest.raises(TableError, match=r"gc\.enabled"):
        cleaned(home, done, yes=False)


def test_a_metadata_file_may_be_old_and_is_refused(tmp_path):
    home, _ = grown(tmp_path)
    with pytest.raises(TableError, match="metadata file"):
        clean(local(home.table.metadata_location))


def test_statistics_go_with_their_snapshot_and_stay_with_it(tmp_path):
    home, _ = grown(tmp_path)
    first, *_, last = ids(home)
    paths = {}
    for number in (first, last):
        for kind in ("puffin", "parquet"):
            path = paths[number, kind] = home.root / "metadata" / f"{number}.stats.{kind}"
            path.write_bytes(b"statistics")
        blob = BlobMetadata(type="apache-datasketches-theta-v1", snapshot_id=number, sequence_number=1, fields=[1])
        file = StatisticsFile(
            snapshot_id=number, statistics_path=f"file://{paths[number, 'puffin']}", file_size_in_bytes=10,
            file_footer_size_in_bytes=4, blob_metadata=[blob],
        )  # fmt: skip
        with home.table.update_statistics() as update:
            update.set_statistics(file)
        part = PartitionStatisticsFile(
            snapshot_id=number, statistics_path=f"file://{paths[number, 'parquet']}", file_size_in_bytes=10
        )
        table = home.table
        home.catalog.commit_table(
            table,
            (AssertTableUUID(uuid=table.metadata.table_uuid),),
            (SetPartitionStatisticsUpdate(partition_statistics=part),),
        )
    done = cleaned(home, now())
    moved = {home.root / file.path for file in done.files if file.reason.startswith("statistics")}
    assert moved == {paths[first, "puffin"], paths[first, "parquet"]}
    assert paths[last, "puffin"].exists()
    assert paths[last, "parquet"].exists()
    assert [entry.snapshot_id for entry in home.table.metadata.statistics] == [last]
    assert [entry.snapshot_id for entry in home.table.metadata.partition_statistics] == [last]


def test_metadata_files_and_files_outside_of_the_tables_folder_stay(tmp_path):
    home, _ = grown(tmp_path)
    outside = tmp_path / "outside.parquet"
    pq.write_table(telemetry(10, first=100), outside)
    home.table.add_files([f"file://{outside}"])
    home.table.delete("id >= 100")
    before = set((home.root / "metadata").glob("*.metadata.json"))
    done = cleaned(home, now())
    assert outside.exists()
    assert any("don't lie in the table's folder" in note for note in done.notes)
    assert before <= set((home.root / "metadata").glob("*.metadata.json"))


# --- broken off, and others ------------------------------------------------------------------------------------------


def test_what_a_clean_up_left_that_ended_after_its_commit_is_found_with_proof(tmp_path, monkeypatch):
    home, done = grown(tmp_path)
    before = {str(home.root / file.path) for file in cleaned(home, done, yes=False).files}
    with monkeypatch.context() as broken:
        broken.setattr(zonal.cleaning.quarantine.Quarantine, "put", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            cleaned(home, done)
    assert len(ids(home)) == 1
    found = cleaned(home, done, expire=None)
    assert {str(home.root / file.path) for file in found.files} == before
    assert quarantined(home.root).keys() == {found.run}


def test_what_another_tools_expiry_left_is_found(tmp_path):
    home, _ = grown(tmp_path)
    first, second, *_ = ids(home)
    home.table.maintenance.expire_snapshots().by_ids([first, second]).commit()
    done = cleaned(home, expire=None)
    assert done.snapshots == ()
    assert {file.reason.partition(" of ")[0] for file in done.files} == {"manifest lists"}
    assert home.table.scan(snapshot_id=ids(home)[0]).to_arrow().num_rows == 60


def test_a_tag_that_appears_before_the_commit_keeps_its_snapshot(tmp_path, monkeypatch):
    home, done = grown(tmp_path)
    first = ids(home)[0]
    commit = SqlCatalog.commit_table
    tags = ["late"]

    def late(self, *given):
        if tags:
            name = tags.pop()
            home.table.manage_snapshots().create_tag(first, name).commit()
        return commit(self, *given)

    monkeypatch.setattr(SqlCatalog, "commit_table", late)
    found = cleaned(home, done)
    assert first in ids(home)
    assert "late" in home.table.metadata.refs
    assert len(found.snapshots) == 2
    assert home.table.scan(snapshot_id=first).to_arrow().num_rows == 20


def test_a_commit_whose_answer_got_lost_is_recognized(tmp_path, monkeypatch):
    home, done = grown(tmp_path)
    commit = SqlCatalog.commit_table

    def lost(self, *given):
        commit(self, *given)
        raise CommitFailedException("a repeated request met its own commit")

    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    assert len(cleaned(home, done).snapshots) == 3


def test_a_catalog_that_cant_be_asked_leaves_all_files(tmp_path, monkeypatch):
    home, done = grown(tmp_path)
    before = everything(home.root)
    load, calls = SqlCatalog.load_table, []

    def silent(self, *given):
        if calls:
            raise ConnectionResetError("the catalog restarts")
        return load(self, *given)

    def broken(*_):
        calls.append(1)
        raise ConnectionResetError("the catalog restarts")

    monkeypatch.setattr(SqlCatalog, "commit_table", broken)
    monkeypatch.setattr(SqlCatalog, "load_table", silent)
    with pytest.raises(CommitUnknownError, match="No file was moved"):
        cleaned(home, done)
    assert everything(home.root) == before


def test_leftovers_of_an_old_run_go(tmp_path):
    home, _ = grown(tmp_path)
    left = left_by_run(home.root / "data")
    done = cleaned(home, expire=None)
    assert [home.root / file.path for file in done.files] == [left]
    assert Path(home.root / "data").exists()
