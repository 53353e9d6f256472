"""Commits: new files are looked at and flushed before, and once one was asked for nothing is removed without proof."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.io.pyarrow import PyArrowFile

import zonal
from support.cluster_tables import Delta, Iceberg, Meanwhile, assert_same_rows, home, parts_of, telemetry
from support.local_runner import run_here
from zonal.errors import ColumnError, CommitUnknownError, ConflictError, TableError, ZonalError
from zonal.history.store import History
from zonal.rewriting import in_place as rewriting

BEFORE = telemetry(400)


@pytest.fixture(params=["delta", "iceberg v2"])
def table(request, tmp_path):
    return home(request.param, tmp_path).make(parts_of(BEFORE, 3))


def local(file):
    return Path(file.path.removeprefix("file://"))


# --- answers that get lost -------------------------------------------------------------------------------------------


class Repeated:
    """A catalog's client that sends a request twice: the first succeeds, and the second one's failure is reported."""

    def __init__(self, monkeypatch, error, then=lambda: None):
        self.real, self.error, self.then, self.armed = SqlCatalog.commit_table, error, then, True
        monkeypatch.setattr(SqlCatalog, "commit_table", lambda *given: self.commit(*given))  # noqa: PLW0108 - a method would bind

    def commit(self, *given):
        done = self.real(*given)
        if self.armed:
            self.armed = False
            self.then()
            raise self.error("the second of two requests")
        return done


def test_a_commit_that_happened_is_kept_when_the_catalog_reports_a_failure_and_falls_silent(tmp_path, monkeypatch):
    table = Iceberg(tmp_path).make(parts_of(BEFORE, 3))
    real, silent = SqlCatalog.load_table, []

    def load(*given):
        if silent:
            raise ConnectionResetError("on purpose")
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "load_table", load)
        Repeated(patch, CommitFailedException, lambda: silent.append(True))
        with pytest.raises(CommitUnknownError, match="The new files stay"):
            table.cluster(by=["x", "y"], target_file_size=4000)
    assert_same_rows(table.rows(), BEFORE)
    assert not table.strays()


def test_a_commit_that_happened_is_recognized_by_its_files_when_its_snapshot_has_been_expired(tmp_path, monkeypatch):
    table = Iceberg(tmp_path).make(parts_of(BEFORE, 3))
    more = telemetry(10, 5, first=1000)

    def others():
        table.append(more)
        current = table.table.metadata.current_snapshot_id
        old = [snapshot.snapshot_id for snapshot in table.table.snapshots() if snapshot.snapshot_id != current]
        table.table.maintenance.expire_snapshots().by_ids(old).commit()

    with monkeypatch.context() as patch:
        Repeated(patch, CommitFailedException, others)
        assert table.cluster(by=["x", "y"], target_file_size=4000).change.rows == 410, (
            "with what was appended meanwhile"
        )
    assert_same_rows(table.rows(), pa.concat_tables([BEFORE, more]))
    assert table.cluster(by=["x", "y"], target_file_size=4000).run.versions == (), "nothing is left to do"


@pytest.mark.parametrize("error", [CommitFailedException, TableAlreadyExistsError, ConnectionResetError])
def test_a_copy_that_was_created_is_recognized_whatever_the_catalog_reports(error, tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), Iceberg(tmp_path, "copy")
    with monkeypatch.context() as patch:
        Repeated(patch, error)
        assert source.cluster(by="x", into=copy.name, **copy.options).change.rows == 400
    assert_same_rows(copy.rows(), BEFORE)


@pytest.mark.parametrize("error", [CommitFailedException, TableAlreadyExistsError, ConnectionResetError])
def test_a_copy_of_which_nobody_can_tell_whether_it_was_created_keeps_its_files(error, tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), Iceberg(tmp_path, "copy")

    def silent(*_):
        raise ConnectionResetError("on purpose")

    with monkeypatch.context() as patch:
        Repeated(patch, error, lambda: patch.setattr(SqlCatalog, "load_table", silent))
        with pytest.raises(CommitUnknownError, match="didn't say whether it created"):
            source.cluster(by="x", into=copy.name, **copy.options)
    assert_same_rows(copy.rows(), BEFORE)


def test_a_copy_whose_name_another_writer_took_is_a_conflict_that_leaves_nothing(tmp_path):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), Iceberg(tmp_path, "copy")
    copy.catalog.create_namespace_if_not_exists("db")
    with pytest.raises(ConflictError, match="Another writer made the table"):
        source.cluster(by="x", into=copy.name, runner=Meanwhile(lambda: copy.make([BEFORE])), **copy.options)
    assert_same_rows(copy.rows(), BEFORE)
    assert not list(tmp_path.rglob("zonal-*/**/*.parquet"))


def test_files_stay_where_an_error_after_the_request_leaves_a_doubt(table, monkeypatch):
    """Whatever goes wrong inside of a commit that succeeded, the table's own metadata decides."""
    from zonal.tables.delta import table as delta
    from zonal.tables.iceberg import table as iceberg

    place, name = (delta, "commit") if table.format == "delta" else (iceberg, "commit_rewrite")
    real = getattr(place, name)

    def failing(*given, **named):
        real(*given, **named)
        raise TableError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(place, name, failing)
        with pytest.raises(CommitUnknownError, match=r"reported as failed.*but the table has"):
            table.cluster(by=["x", "y"], target_file_size=4000)
    assert_same_rows(table.rows(), BEFORE)


# --- new files are looked at -----------------------------------------------------------------------------------------


def vanish(table, file):  # noqa: ARG001
    local(file).unlink()


def tear(table, file):  # noqa: ARG001
    os.truncate(local(file), file.size // 2)


def zero(table, file):  # noqa: ARG001
    local(file).write_bytes(bytes(file.size))


def shorten(table, file):  # noqa: ARG001
    """Another file of the same size with fewer rows can't be made: fewer rows and a comment of the right length."""
    rows = pq.read_table(local(file))
    for pad in range(file.size):
        sink = pa.BufferOutputStream()
        padded = rows.slice(1).replace_schema_metadata({"pad": "x" * pad})
        pq.write_table(padded, sink, compression="zstd", store_schema=False)
        if sink.tell() >= file.size:
            break
    local(file).write_bytes(sink.getvalue())


def vacuum(table, file):
    if table.format != "delta":
        pytest.skip("PyIceberg removes no orphans")
    table.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert not local(file).exists()


@pytest.mark.parametrize("harm", [vanish, tear, zero, shorten, vacuum], ids=lambda harm: harm.__name__)
def test_new_files_that_are_not_there_whole_are_never_committed(harm, table):
    version = table.version()

    def runner(*given):
        tallies, written = run_here(*given)
        harm(table, written[0])
        return tallies, written

    with pytest.raises(TableError, match=r"The new file '.*' (isn't there|has|can't be read).*Nothing was committed"):
        table.cluster(by=["x", "y"], target_file_size=4000, runner=runner)
    assert harm is vacuum or table.version() == version
    assert not table.strays()
    assert not [file for file in table.files() if "zonal-" in str(file.path)]
    assert_same_rows(table.rows(), BEFORE)


def test_new_files_are_looked_at_again_when_the_commit_takes_long(table, monkeypatch):
    """As where the newest version is read, or another writer is faster, for more than a minute."""
    from zonal.tables.delta import table as delta
    from zonal.tables.iceberg import table as iceberg

    place, name = (delta, "commit") if table.format == "delta" else (iceberg, "commit_rewrite")
    real, version = getattr(place, name), table.version()

    def late(given, *others, **named):
        next(table.root.rglob("zonal-*/**/*.parquet")).unlink()
        return real(given, *others, **named)

    with monkeypatch.context() as patch:
        patch.setattr(place, name, late)
        patch.setattr(rewriting, "RECENTLY", -1.0)
        with pytest.raises(TableError, match=r"The new file '.*' isn't there.* Nothing was committed"):
            table.cluster(by=["x", "y"], target_file_size=4000)
    assert table.version() == version
    assert not table.strays()
    assert_same_rows(table.rows(), BEFORE)


@pytest.mark.parametrize("target", ["parquet", "delta", "iceberg"])
def test_a_copy_whose_files_are_not_there_whole_is_not_published(target, tmp_path):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), home(target, tmp_path, "copy")

    def runner(*given):
        tallies, written = run_here(*given)
        local(written[0]).unlink()
        return tallies, written

    with pytest.raises(TableError, match="see the same disk"):
        source.cluster(by="x", into=copy.name, runner=runner, **copy.options)
    assert source.cluster(by="x", into=copy.name, **copy.options).change.rows == 400
    assert_same_rows(copy.rows(), BEFORE)


# --- on the disk before it counts ------------------------------------------------------------------------------------


class Flushed:
    """Which paths were flushed, up to the moment of the commit."""

    def __init__(self, patch):
        self.paths, self.before = set(), None
        real = os.fsync

        def fsync(descriptor):
            self.paths.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
            real(descriptor)

        patch.setattr(os, "fsync", fsync)

    def at(self, patch, owner, name):
        """Remember what is flushed when this function is called."""
        real = getattr(owner, name)

        def called(*given, **named):
            if self.before is None:
                self.before = set(self.paths)
            return real(*given, **named)

        patch.setattr(owner, name, called)


def folders_between(path, root):
    return {folder for folder in Path(path).parents if folder.is_relative_to(root)}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc tells the names of open files")
def test_data_files_and_their_folders_are_on_the_disk_before_a_commit(table, monkeypatch):
    with monkeypatch.context() as patch:
        flushed = Flushed(patch)
        if table.format == "delta":
            flushed.at(patch, os, "link")
        else:
            flushed.at(patch, SqlCatalog, "commit_table")
        table.cluster(by=["x", "y"], target_file_size=4000)
    files = [file.path for file in table.files()]
    assert all("zonal-" in str(path) for path in files)
    assert {*files} <= flushed.before, "data files"
    assert set().union(*(folders_between(path, table.root) for path in files)) <= flushed.before, "folders"
    if table.format != "delta":
        snapshot = table.table.current_snapshot()
        manifests = [manifest.manifest_path for manifest in snapshot.manifests(table.table.io)]
        named = {Path(path.removeprefix("file://")) for path in (snapshot.manifest_list, *manifests)}
        assert named <= flushed.before, "manifests"
        assert Path(table.table.metadata_location.removeprefix("file://")) in flushed.paths, "metadata"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc tells the names of open files")
def test_a_copy_is_on_the_disk_before_it_appears(tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([BEFORE], ["p"]), tmp_path / "copies" / "copy"
    copy.parent.mkdir()
    with monkeypatch.context() as patch:
        flushed = Flushed(patch)
        source.cluster(by="x", into=f"parquet:{copy}")
    names = [path.relative_to(copy) for path in copy.rglob("*.parquet")]
    (run,) = {folder for path in flushed.paths for folder in path.parents if folder.parent == copy.parent}
    assert names
    assert {run / name for name in names} <= flushed.paths
    assert {run, copy.parent, *((run / name).parent for name in names)} <= flushed.paths


# --- messages that are true ------------------------------------------------------------------------------------------


class FailingLater:
    """A runner whose second run loses a file."""

    def __init__(self):
        self.runs = 0

    def __call__(self, *given):
        self.runs += 1
        tallies, written = run_here(*given)
        return tallies, written if self.runs == 1 else written[1:]


def test_when_a_later_commit_fails_the_error_and_the_history_know_of_the_first(table, tmp_path):
    version, database = table.version(), f"sqlite:///{tmp_path / 'history.db'}"
    sizes = {"target_file_size": 2000, "commit_every": 6000}
    with pytest.raises(ZonalError, match=r"Rows don't add up.* 1 commit of the run succeeded") as failed:
        table.cluster(by=["x", "y"], runner=FailingLater(), database=database, **sizes)
    assert "Nothing was committed" not in str(failed.value)
    assert table.version() != version
    with History.open(database) as history:
        (run,) = history.runs(zonal.open_table(table.name, **table.options).snapshot().location)
    assert run.version == table.version()
    assert run.rows > 0


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from support.cluster_tables import Delta
from zonal.errors import TableError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    Delta(sys.argv[2]).cluster(by=["x"], target_file_size=10**8)
except TableError as error:
    print(error)
"""


def test_a_disk_that_is_full_is_what_the_error_says(tmp_path):
    rows = telemetry(5000).append_column("blob", pa.array([os.urandom(60) for _ in range(5000)]))
    Delta(tmp_path).make(parts_of(rows, 4))
    told = subprocess.run(
        [sys.executable, "-c", FULL, str(Path(__file__).parents[1]), str(tmp_path)],
        check=True, capture_output=True, text=True, timeout=240,
    ).stdout  # fmt: skip
    assert "Can't write the file" in told
    assert "File too large" in told


def test_a_log_entry_for_which_there_is_no_space_blames_no_hard_links(tmp_path, monkeypatch):
    table = Delta(tmp_path).make(parts_of(BEFORE, 2))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        with pytest.raises(TableError, match="No space left") as failed:
            table.cluster(by=["x", "y"])
    assert "hard links" not in str(failed.value)
    assert not table.strays()


def test_a_delta_copy_can_be_tried_again_after_its_commit_failed(tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), Delta(tmp_path, "copy")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        with pytest.raises(TableError, match="No space left"):
            source.cluster(by="x", into=copy.name)
    assert not list(copy.root.rglob("*"))
    assert source.cluster(by="x", into=copy.name).change.rows == 400
    assert_same_rows(copy.rows(), BEFORE)


def test_a_delta_copy_can_be_made_beside_what_a_killed_run_left(tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), Delta(tmp_path, "copy")
    with monkeypatch.context() as patch:
        patch.setattr("zonal.rewriting.copy.settle", lambda *_: None)
        patch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(SystemError("killed")))
        with pytest.raises(SystemError):
            source.cluster(by="x", into=copy.name)
    assert list(copy.root.rglob("*.parquet"))
    (copy.root / "_delta_log").mkdir(exist_ok=True)
    assert source.cluster(by="x", into=copy.name).change.rows == 400
    assert_same_rows(copy.rows(), BEFORE)


def test_an_iceberg_copy_whose_manifest_can_not_be_written_says_so(tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([BEFORE]), Iceberg(tmp_path, "copy")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PyArrowFile, "create", full)
        with pytest.raises(TableError, match=r"Can't write the new metadata of 'db.copy'.*No space left") as failed:
            source.cluster(by="x", into=copy.name, **copy.options)
    assert not isinstance(failed.value, CommitUnknownError)
    assert not list(tmp_path.rglob("zonal-*/**/*.parquet"))
    assert source.cluster(by="x", into=copy.name, **copy.options).change.rows == 400


def test_a_parquet_copy_whose_rename_is_reported_as_failed_is_recognized(tmp_path, monkeypatch):
    source = Delta(tmp_path, "source").make([BEFORE])
    from zonal.storage import Storage

    real = Storage.locate

    class Repeating(pa.fs.LocalFileSystem):
        def move(self, *given):
            super().move(*given)
            raise FileNotFoundError(errno.ENOENT, "the second of two requests")

    monkeypatch.setattr(Storage, "locate", lambda *given: (Repeating(), real(*given)[1]))
    assert source.cluster(by="x", into=f"parquet:{tmp_path / 'copy'}").change.rows == 400
    assert pq.read_table(tmp_path / "copy").num_rows == 400


@pytest.mark.parametrize("moment", ["while it works", "in its second commit", "after the request"])
def test_what_an_interrupt_left_is_told(moment, table, monkeypatch):
    runs = []

    def runner(*given):
        runs.append(given)
        if moment == "while it works" or (moment == "in its second commit" and len(runs) == 2):
            raise KeyboardInterrupt
        return run_here(*given)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "after the request":
            place, name = (os, "link") if table.format == "delta" else (SqlCatalog, "commit_table")
            patch.setattr(place, name, interrupted)
        with pytest.raises((KeyboardInterrupt, CommitUnknownError)) as stopped:
            table.cluster(by=["x", "y"], runner=runner, target_file_size=2000, commit_every=6000)
    told = {"while it works": "Nothing was committed", "in its second commit": "1 commit of the run succeeded"}
    assert re.search(told.get(moment, "[Ii]t isn't known|happened isn't known"), str(stopped.value))
    assert ("Nothing was committed" in str(stopped.value)) == (moment == "while it works")
    assert_same_rows(table.rows(), BEFORE)


# --- key columns that change meanwhile -------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["rename", "drop"])
@pytest.mark.parametrize("when", ["second commit", "after a conflict", "no conflict"])
def test_a_key_column_that_is_renamed_or_dropped_meanwhile_is_told(change, when, tmp_path, monkeypatch):
    monkeypatch.setattr(rewriting, "_FIRST_PAUSE", 0.001)
    table = Iceberg(tmp_path).make(parts_of(BEFORE, 3))

    def others():
        with table.table.update_schema(allow_incompatible_changes=True) as update:
            update.rename_column("x", "z") if change == "rename" else update.delete_column("x")
        if when == "after a conflict":
            table.table.delete("id = 3")

    what = "renamed to 'z'" if change == "rename" else "dropped"
    options = {"target_file_size": 2000, "commit_every": 6000} if when == "second commit" else {}
    with pytest.raises(ColumnError, match=f"The column 'x' of 'db.t' was {what} during the rewrite"):
        table.cluster(by=["x", "y"], layout="linear", runner=Meanwhile(others), **options)
    metadata = table.table.metadata
    assert "zonal.layout" not in metadata.properties
    assert not [order for order in metadata.sort_orders if order.fields]
    expected = BEFORE.filter(pa.compute.not_equal(BEFORE["id"], 3)) if when == "after a conflict" else BEFORE
    assert table.rows().num_rows == expected.num_rows
    assert not table.strays()
