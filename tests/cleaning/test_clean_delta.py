"""Delta tables after a clean-up: every version that is kept can be read, and of the others nothing is left."""

import json
import os
from random import Random
from urllib.parse import quote, unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from simulation.delta_ledger import DeltaLedger, VectorLedger
from support.cleaning import WEEK, cleaned, everything, left_by_run, now, quarantined
from support.cluster_tables import Delta, parts_of, row_counts, telemetry
from support.delta_rewrites import Z85
from support.delta_tables import LogWriter, add, features, field, metadata, protocol
from zonal.errors import TableError, ZonalError
from zonal.verbs.clean import clean

ACTS = (
    "append", "append", "delete", "update", "overwrite", "replace_part", "compact", "add_column", "checkpoint",
    "restore", "recluster",
)  # fmt: skip
VECTOR_ACTS = ("append", "mark", "mark", "mark", "drop_file", "recluster")


class Remembering(DeltaLedger):
    """A table whose log is never cleaned up."""

    def _make(self, rows, parts, keys, properties=None):  # noqa: ARG002
        super()._make(rows, parts, keys)


def rows_at(root, version):
    """Rows of a version, by deltalake."""
    table = DeltaTable(root, version=version)
    found = QueryBuilder().register("t", table).execute("select * from t")
    return row_counts(pa.table(found.read_all() if hasattr(found, "read_all") else found))


def actions(root, version):
    text = (root / "_delta_log" / f"{version:020d}.json").read_text()
    return [next(iter(json.loads(line).items())) for line in text.split("\n") if line]


def files_at(root, version):
    """Data files and deletion vectors of a version, by replaying the log once more, as simply as possible."""
    live = {}
    for number in range(version + 1):
        for kind, body in actions(root, number):
            if kind in ("add", "remove"):
                key = (body["path"], json.dumps(body.get("deletionVector")))
                live.pop(key, None)
                live |= {key: body} if kind == "add" else {}
    return {unquote(path) for path, _ in live} | vectors_of(live.values())


def vectors_of(bodies):
    """Files of deletion vectors, which the ledger names by what deltalake reads: `u` with a UUID in base 85."""
    found = set()
    for body in bodies:
        vector = body.get("deletionVector") or {}
        if vector.get("storageType") == "u":
            text, data = vector["pathOrInlineDv"][-20:], b""
            for start in range(0, 20, 5):
                number = 0
                for character in text[start : start + 5]:
                    number = number * 85 + Z85.index(character)
                data += number.to_bytes(4, "big")
            digits = data.hex()
            name = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
            found.add(f"deletion_vector_{name}.bin")
    return found


def ever(root, newest):
    """All files that any version named."""
    bodies = [body for n in range(newest + 1) for kind, body in actions(root, n) if kind in ("add", "remove")]
    return {unquote(body["path"]) for body in bodies} | vectors_of(bodies)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("kind", "acts"), [(Remembering, ACTS), (VectorLedger, VECTOR_ACTS)], ids=["plain", "vectors"])
def test_kept_versions_read_as_before_and_exactly_the_rest_is_moved(tmp_path, kind, acts, seed):
    draw = Random(f"{kind.__name__} {seed}")  # noqa: S311
    ledger = kind(Random(seed), tmp_path).make()  # noqa: S311
    root = ledger.table.root
    moments = []
    for _ in range(7):
        moments.append((now(), DeltaTable(root).version()))
        ledger.act(draw.choice(acts))
    newest = DeltaTable(root).version()
    moments.append((now(), newest))
    cutoff, oldest = draw.choice(moments)
    before = {version: rows_at(root, version) for version in range(oldest, newest + 1)}
    reachable = set().union(*(files_at(root, version) for version in range(oldest, newest + 1)))
    content = everything(root)

    plan = cleaned(ledger.table, cutoff, yes=False)
    assert everything(root) == content, "a dry run changes nothing"
    done = cleaned(ledger.table, cutoff)

    assert {file.path for file in done.files} == ever(root, newest) - reachable
    assert plan.files == done.files
    assert {version: rows_at(root, version) for version in before} == before
    assert sum(file.size for file in done.files) == done.bytes == sum(total.bytes for total in done.totals)
    if done.run is not None:
        cleaned(ledger.table, undo=done.run)
        assert everything(root) == content


# --- what is promised ------------------------------------------------------------------------------------------------


def replaced(tmp_path, properties=None):
    """A table whose first two files were replaced, and the moment after that."""
    home = Delta(tmp_path).make(parts_of(telemetry(60), 2), properties=properties)
    home.cluster(by=["x"])
    return home, now()


@pytest.mark.parametrize(
    ("properties", "asked", "named"),
    [
        ({}, "6d", "the default of delta.deletedFileRetentionDuration"),
        ({"delta.deletedFileRetentionDuration": "interval 30 days"}, "29d", "delta.deletedFileRetentionDuration"),
        ({"delta.logRetentionDuration": "interval 60 days"}, "8w", "delta.logRetentionDuration"),
    ],
)
def test_what_a_table_promises_expires_only_on_demand(tmp_path, properties, asked, named):
    home, done = replaced(tmp_path, properties)
    with pytest.raises(ZonalError, match=named):
        cleaned(home, done, expire=asked)
    assert quarantined(home.root) == {}
    assert len(cleaned(home, done + 10 * WEEK, expire=asked, ignore_retention=True).files) == 2


def test_a_retention_that_cant_be_read_is_an_error(tmp_path):
    home, done = replaced(tmp_path)
    commit = home.root / "_delta_log" / f"{home.version():020d}.json"
    lines = [json.loads(line) for line in commit.read_text().split("\n") if line]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.deletedFileRetentionDuration"] = "interval 2 months"
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(TableError, match="2 months"):
        cleaned(home, done)


def test_a_version_that_was_committed_by_a_clock_ahead_counts_as_young(tmp_path):
    home, done = replaced(tmp_path)
    newest = home.root / "_delta_log" / f"{home.version():020d}.json"
    ahead = (done + WEEK).timestamp()
    os.utime(newest, (ahead, ahead))
    assert cleaned(home, done).files == ()


def test_without_a_time_to_keep_nothing_of_a_version_is_touched(tmp_path):
    home, _ = replaced(tmp_path)
    assert cleaned(home, expire=None).files == ()


def test_a_log_that_doesnt_go_back_so_far_lets_nothing_expire(tmp_path):
    home, _ = replaced(tmp_path)
    first = now() - 2 * WEEK
    found = cleaned(home, first)
    assert found.files == ()
    assert "nothing expires" in found.notes[0]


def test_change_data_stays_and_is_read(tmp_path):
    home = Delta(tmp_path).make([telemetry(60)], properties={"delta.enableChangeDataFeed": "true"})
    home.table.delete("id < 20")
    changes = sorted(path.name for path in (home.root / "_change_data").rglob("*.parquet"))
    assert changes, "the delete wrote change data"
    write_deltalake(home.root, telemetry(5, first=90), mode="append")
    done = cleaned(home, now())
    assert done.files
    assert sorted(path.name for path in (home.root / "_change_data").rglob("*.parquet")) == changes
    fed = pa.table(home.table.load_cdf(starting_version=1).read_all())
    assert fed["_change_type"].to_pylist().count("delete") == 20


# --- what is never touched -------------------------------------------------------------------------------------------


def by_hand(root, *removes, live="live.parquet"):
    """A table whose log removed some paths, whatever they are."""
    writer = LogWriter(root)
    writer.commit(protocol(), metadata(field("id", "long")), add(live), version=0)
    writer.commit(*({"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0}} for path in removes))
    return writer


class Named:
    """A table by its folder."""

    def __init__(self, root):
        self.root, self.name, self.options = root, f"delta:{root}", {}


def test_paths_that_lead_elsewhere_or_are_spelled_strangely_are_never_touched(tmp_path):
    root, other = tmp_path / "t", tmp_path / "other"
    for folder in (root / "a", root / "_hidden", root / ".dot", root / "_delta_log", root / "_change_data", other):
        folder.mkdir(parents=True)
    (root / "linked").symlink_to(other)
    places = [
        other / "x.parquet", root / "a" / "x.parquet", root / "_hidden" / "x.parquet", root / ".dot" / "x.parquet",
        root / "_change_data" / "x.parquet", root / "x.parquet", root / "LIVE.parquet", root / "old.parquet",
    ]  # fmt: skip
    for place in places:
        place.write_bytes(b"rows")
    (root / "link.parquet").symlink_to(root / "x.parquet")
    (root / "fifo.parquet").mkdir()
    removed = [
        "../other/x.parquet", "%2e%2e/other/x.parquet", "a/../../other/x.parquet", str(other / "x.parquet"),
        f"file://{other}/x.parquet", f"file:{root}/x.parquet", str(root / "x.parquet"), quote(f"{root}/x.parquet", ""),
        "linked/x.parquet", "link.parquet", "fifo.parquet", "_hidden/x.parquet", ".dot/x.parquet", "a//x.parquet",
        "./a/x.parquet", "_change_data/x.parquet", "_delta_log/00000000000000000000.json", "x.parquet%00",
        "gone.parquet", "LIVE.parquet",
    ]  # fmt: skip
    by_hand(root, *removed, "old.parquet")
    before = everything(root) | everything(other)
    done = cleaned(Named(root), now())
    assert [file.path for file in done.files] == ["old.parquet"]
    after = everything(root) | everything(other)
    assert {name for name in before if name not in after} == {"old.parquet"}
    assert any("shallow clone" in note for note in done.notes)


def test_a_file_that_isnt_as_the_log_knew_it_stays(tmp_path):
    writer = LogWriter(tmp_path / "t")
    writer.commit(protocol(), metadata(field("id", "long")), version=0)
    (tmp_path / "t" / "x.parquet").write_bytes(b"others' rows")
    writer.commit({"remove": {"path": "x.parquet", "dataChange": True, "deletionTimestamp": 0, "size": 3}})
    done = cleaned(Named(tmp_path / "t"), now())
    assert done.files == ()
    assert "12 bytes, and the log says 3" in done.notes[0]


def test_files_that_the_log_doesnt_name_may_be_a_running_jobs_and_stay(tmp_path):
    home, done = replaced(tmp_path)
    (home.root / "part-00000-uncommitted.parquet").write_bytes(b"rows")
    cleaned(home, done)
    assert (home.root / "part-00000-uncommitted.parquet").exists()


def test_a_feature_that_isnt_known_may_need_files_and_is_refused(tmp_path):
    writer = LogWriter(tmp_path / "t")
    writer.commit(features("deletionVectors", "icebergCompatV2"), metadata(field("id", "long")), version=0)
    with pytest.raises(TableError, match="icebergCompatV2"):
        cleaned(Named(tmp_path / "t"), now())


def test_a_commit_that_cant_be_read_is_an_error_and_nothing_is_moved(tmp_path):
    home, done = replaced(tmp_path)
    (home.root / "_delta_log" / f"{0:020d}.json").write_text("{not json}")
    with pytest.raises(TableError, match="not JSON"):
        cleaned(home, done)
    assert quarantined(home.root) == {}


def test_a_pinned_version_is_refused(tmp_path):
    home, _ = replaced(tmp_path)
    with pytest.raises(TableError, match="all versions"):
        clean(f"{home.name}@0")


# --- leftovers -------------------------------------------------------------------------------------------------------


def test_leftovers_of_an_old_run_go_and_its_committed_files_stay(tmp_path):
    home, _ = replaced(tmp_path)
    (folder,) = home.run_folders()
    stray = folder / "stray.parquet"
    stray.write_bytes(b"not committed")
    left = left_by_run(home.root)
    done = cleaned(home, now(), expire=None)
    assert {home.root / file.path for file in done.files} == {stray, left}
    assert not left.parent.exists(), "an empty folder goes, too"
    assert len(home.rows()) == 60


def test_a_run_of_which_one_folder_is_young_may_still_go_on(tmp_path):
    home, _ = replaced(tmp_path)
    left = left_by_run(home.root)
    young = left.parent.with_name(left.parent.name[:-1] + "1")
    young.mkdir()
    done = cleaned(home, now() - 2 * WEEK, expire=None)
    assert done.files == ()
    assert "it may still go on" in done.notes[0]
    os.utime(young, (0, 0))
    assert len(cleaned(home, now() - 2 * WEEK, expire=None).files) == 1


def test_an_age_at_which_jobs_run_is_refused(tmp_path):
    home, _ = replaced(tmp_path)
    with pytest.raises(ZonalError, match="a job that still writes"):
        cleaned(home, expire=None, older_than="2h")


def test_a_file_that_another_writer_takes_up_while_it_is_moved_is_brought_back(tmp_path, monkeypatch):
    home, done = replaced(tmp_path)
    move, old = os.rename, home.version()

    def restoring(source, target):
        move(source, target)
        if str(source).endswith(".parquet") and home.version() == old:
            removed = [body["path"] for kind, body in actions(home.root, old) if kind == "remove"]
            adds = [body for n in range(old) for kind, body in actions(home.root, n) if kind == "add"]
            again = [{"add": body} for body in adds if body["path"] in removed]
            path = home.root / "_delta_log" / f"{old + 1:020d}.json"
            path.write_text("".join(json.dumps(action) + "\n" for action in again))

    monkeypatch.setattr(os, "rename", restoring)
    found = cleaned(home, done)
    assert found.files == ()
    assert "brought back" in found.notes[0]
    assert len(home.rows()) == 120, "the restored files are there beside the new ones"
