"""`cluster` against writers that are faster: rows are those of the history in sequence, as other libraries read it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType

from support.cluster_tables import (
    IN_A_BUCKET,
    Delta,
    Meanwhile,
    assert_same_rows,
    home,
    parts_of,
    row_counts,
    telemetry,
)
from support.delta_rewrites import data_file, stored_vector
from support.delta_tables import LogWriter, features, field, metadata
from support.iceberg_rewriting import delete_equal, delete_positions, delete_vectors
from zonal.errors import ConflictError
from zonal.rewriting import in_place as rewriting

BEFORE = telemetry(240)
MORE = telemetry(40, 1, first=240)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(rewriting, "_FIRST_PAUSE", 0.001)


@pytest.fixture(params=["delta", IN_A_BUCKET, "iceberg v1", "iceberg v2"])
def kind(request):
    return request.param


@pytest.fixture(params=[(), ("p",)], ids=["unpartitioned", "partitioned"])
def partitioning(request):
    return request.param


def made(kind, folder, partitioning=(), parts=3):
    return home(kind, folder).make(parts_of(BEFORE, parts), partitioning)


def check(table, expected):
    """The table has these rows, no file of ours is left over, and it can be clustered on."""
    assert_same_rows(table.rows(), expected)
    assert not table.strays()
    again = table.cluster(by=["x", "y"])
    assert again.run.conflicts == 0
    assert_same_rows(table.rows(), expected)


# --- what doesn't stand in the way -----------------------------------------------------------------------------------


def test_an_append_survives_and_is_clustered_once_it_is_worth_it(kind, partitioning, tmp_path):
    table = made(kind, tmp_path, partitioning)
    runner = Meanwhile(lambda: table.append(MORE))
    done = table.cluster(by=["x", "y"], runner=runner)
    assert done.run.conflicts == 0
    assert len(done.run.versions) == runner.runs <= 2, "the run looks again at what arrived meanwhile"
    assert done.change.rows >= 240
    check(table, pa.concat_tables([BEFORE, MORE]))


def test_a_delete_in_a_file_that_is_not_rewritten_is_no_conflict(kind, tmp_path):
    table = made(kind, tmp_path)
    runner = Meanwhile(lambda: table.table.delete("id >= 200"))
    done = table.cluster(by=["x", "y"], where="id < 70", runner=runner)
    assert (done.run.conflicts, done.change.removed_files, runner.runs) == (0, 1, 1)
    assert_same_rows(table.rows(), BEFORE.slice(0, 200))
    assert not table.strays()


# --- what changes rewritten files ------------------------------------------------------------------------------------


def test_a_delete_in_a_rewritten_file_is_kept_and_the_rest_done_again(kind, tmp_path):
    table = made(kind, tmp_path)
    runner = Meanwhile(lambda: table.table.delete("id < 10"))
    done = table.cluster(by=["x", "y"], runner=runner)
    assert (done.run.conflicts, len(done.run.versions), runner.runs) == (1, 1, 2)
    check(table, BEFORE.slice(10))


def test_only_the_partition_concerned_is_done_again(kind, tmp_path):
    table = made(kind, tmp_path, ["p"])
    touched = BEFORE.filter(pc.equal(BEFORE["p"], "b"))["id"].to_pylist()[:5]
    sources = []

    def other():
        table.table.delete(f"p = 'b' and id in ({', '.join(map(str, touched))})")

    def runner(scan, writing, placement, splits, report):
        sources.append(len(scan.sources))
        return meanwhile(scan, writing, placement, splits, report)

    meanwhile = Meanwhile(other)
    done = table.cluster(by=["x", "y"], runner=runner)
    assert (done.run.conflicts, len(done.run.versions), meanwhile.runs) == (1, 2, 2)
    assert sources[0] == 9
    assert 1 <= sources[1] <= 3, "one partition of three"
    assert done.change.rows == 240 - 5
    check(table, BEFORE.filter(pc.invert(pc.is_in(BEFORE["id"], pa.array(touched)))))


def test_an_overwrite_of_the_whole_table_wins(kind, partitioning, tmp_path):
    table = made(kind, tmp_path, partitioning)

    def other():
        if table.format == "delta":
            from deltalake import write_deltalake

            write_deltalake(table.root, MORE, mode="overwrite")
        else:
            table.table.overwrite(MORE)

    done = table.cluster(by=["x", "y"], runner=Meanwhile(other))
    assert done.run.conflicts == 1
    check(table, MORE)


def test_a_compaction_of_the_same_files_makes_no_duplicates(partitioning, tmp_path):
    table = made("delta", tmp_path, partitioning)
    done = table.cluster(by=["x", "y"], runner=Meanwhile(table.table.optimize.compact))
    assert done.run.conflicts == 1
    check(table, BEFORE)


def test_of_two_runs_with_the_same_layout_the_slower_has_nothing_left_to_do(kind, partitioning, tmp_path):
    table = made(kind, tmp_path, partitioning)
    other = []
    done = table.cluster(by=["x", "y"], runner=Meanwhile(lambda: other.append(table.cluster(by=["x", "y"]))))
    assert (other[0].change.rows, other[0].run.conflicts) == (240, 0)
    assert (done.run.versions, done.change.rows, done.run.conflicts) == ((), 0, 1)
    check(table, BEFORE)


def test_of_two_runs_with_different_layouts_both_are_done_one_after_the_other(kind, tmp_path):
    table = made(kind, tmp_path)
    done = table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.cluster(by="s")))
    assert (done.run.conflicts, done.change.rows) == (1, 240)
    assert done.layout == "zorder(x, y)"
    check(table, BEFORE)


# --- deletes that only the formats' engines write --------------------------------------------------------------------


def delta_with_vectors(folder):
    """A Delta table of the files of `BEFORE` whose protocol has deletion vectors; the log is written by hand."""
    log = LogWriter(folder / "t")
    kinds = {"id": "long", "x": "long", "y": "double", "s": "string", "p": "string"}
    adds = [data_file(log, f"{number}.parquet", part) for number, part in enumerate(parts_of(BEFORE, 3))]
    log.commit(features("deletionVectors"), metadata(*(field(name, kind) for name, kind in kinds.items())), *adds)
    return Delta(folder), log, adds


def datafusion_rows(table):
    """Read by deltalake's query engine, which knows deletion vectors."""
    from deltalake import QueryBuilder

    found = QueryBuilder().register("t", table.table).execute("select * from t")
    return pa.table(found.read_all() if hasattr(found, "read_all") else found)


@pytest.mark.parametrize("grown", [False, True], ids=["new", "grown"])
@pytest.mark.parametrize("then_append", [False, True], ids=["alone", "followed by an append"])
def test_a_deletion_vector_of_a_rewritten_file_deletes_its_rows_for_good(grown, then_append, tmp_path):
    table, log, adds = delta_with_vectors(tmp_path)
    version = [0]

    def set_vector(positions):
        add = {"add": {**adds[1]["add"], "deletionVector": stored_vector(log, positions)}}
        old = {"path": "1.parquet", "dataChange": True, "deletionTimestamp": 0}
        if "deletionVector" in adds[1]["add"]:
            old["deletionVector"] = adds[1]["add"]["deletionVector"]
        version[0] += 1
        log.commit({"remove": old}, add, version=version[0])
        adds[1] = add

    if grown:
        set_vector([3])

    def other():
        set_vector([3, 4, 5])
        if then_append:
            log.commit(data_file(log, "more.parquet", MORE), version=version[0] + 1)

    done = table.cluster(by=["x", "y"], runner=Meanwhile(other))
    assert done.run.conflicts == 1
    gone = BEFORE.slice(83, 3)["id"]
    expected = BEFORE.filter(pc.invert(pc.is_in(BEFORE["id"], gone.combine_chunks())))
    if then_append:
        expected = pa.concat_tables([expected, MORE])
    assert_same_rows(datafusion_rows(table), expected)
    assert not list(table.root.glob("zonal-*-0"))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("place", ["a rewritten file", "another file"])
def test_deletes_by_position_are_kept(version, place, tmp_path):
    table = made(f"iceberg v{version}", tmp_path)
    files = {min(_ids(file)): file for file in table.files()}
    target = files[0] if place == "a rewritten file" else files[160]
    gone = _ids(target)[2:5]

    def other():
        path = f"file://{target.path}"
        delete = delete_positions if version == 2 else delete_vectors
        delete(table.catalog, tmp_path, {path: [2, 3, 4]})

    done = table.cluster(by=["x", "y"], where="id < 150", runner=Meanwhile(other))
    is_carried = place == "a rewritten file" and version == 2
    assert done.run.conflicts == (place == "a rewritten file" and not is_carried)
    assert done.run.carried_deletes == 3 * is_carried
    kept = pc.invert(pc.is_in(BEFORE["id"], pa.array(gone)))
    assert_same_rows(table.rows(), BEFORE.filter(kept))
    assert not table.strays()


def _ids(file):
    return pq.read_table(file.path)["id"].to_pylist()


def test_an_equality_delete_applies_to_what_was_rewritten_meanwhile(tmp_path):
    table = made("iceberg v2", tmp_path)
    schema = pa.schema([pa.field("id", pa.int64(), True, {"PARQUET:field_id": "1"})])

    def other():
        delete_equal(table.catalog, tmp_path, pa.table({"id": [1, 100, 239]}, schema=schema), [1])

    done = table.cluster(by=["x", "y"], runner=Meanwhile(other))
    assert (done.run.conflicts, len(done.run.versions)) == (0, 1)
    # PyIceberg can't read equality deletes, so the next run, which applies them, shows what the table has.
    table.cluster(by=["x", "y"], full=True)
    kept = pc.invert(pc.is_in(BEFORE["id"], pa.array([1, 100, 239])))
    assert_same_rows(table.rows(), BEFORE.filter(kept))


# --- changes of the table itself -------------------------------------------------------------------------------------


def test_a_new_column_is_null_in_old_rows_and_kept_in_new_ones(kind, tmp_path):
    table = made(kind, tmp_path)
    wider = MORE.append_column("more", pa.array(range(40)))

    def other():
        if table.format == "delta":
            from deltalake import write_deltalake

            write_deltalake(table.root, wider, mode="append", schema_mode="merge")
        else:
            with table.table.update_schema() as update:
                update.add_column("more", LongType())
            table.append(wider)

    table.cluster(by=["x", "y"], runner=Meanwhile(other))
    old = BEFORE.append_column("more", pa.nulls(240, pa.int64()))
    check(table, pa.concat_tables([old, wider]))


def test_a_property_that_was_set_stays(kind, tmp_path):
    table = made(kind, tmp_path)

    def other():
        if table.format == "delta":
            table.table.alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
        else:
            with table.table.transaction() as change:
                change.set_properties({"owner": "somebody"})

    table.cluster(by=["x", "y"], runner=Meanwhile(other))
    if table.format == "delta":
        assert table.table.metadata().configuration["delta.logRetentionDuration"] == "interval 40 days"
    else:
        assert table.table.properties["owner"] == "somebody"
    check(table, BEFORE)


def test_when_the_base_snapshot_expires_the_work_is_done_again(tmp_path):
    table = made("iceberg v2", tmp_path)
    base = table.version()

    def other():
        table.append(MORE)
        table.table.maintenance.expire_snapshots().by_id(base).commit()

    done = table.cluster(by=["x", "y"], runner=Meanwhile(other))
    assert done.run.conflicts == 1
    assert base not in [snapshot.snapshot_id for snapshot in table.table.snapshots()]
    check(table, pa.concat_tables([BEFORE, MORE]))


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_after_a_rollback_rows_that_were_taken_back_stay_away(kind, tmp_path):
    table = made(kind, tmp_path)
    first = 1 if kind == "delta" else table.table.snapshots()[1].snapshot_id

    def other():
        if table.format == "delta":
            table.table.restore(first)
        else:
            table.table.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()

    done = table.cluster(by=["x", "y"], runner=Meanwhile(other))
    assert done.run.conflicts == 1
    check(table, BEFORE.slice(0, 160))


# --- no end of it ----------------------------------------------------------------------------------------------------


def test_after_some_attempts_a_run_gives_up_and_leaves_the_table_to_the_others(kind, tmp_path):
    table = made(kind, tmp_path)
    numbers = iter(range(100))

    def other():
        table.table.delete(f"id = {next(numbers)}")

    runner = Meanwhile(other, forever=True)
    with pytest.raises(ConflictError, match=f"during each of {rewriting.ATTEMPTS} attempts"):
        table.cluster(by=["x", "y"], runner=runner)
    assert runner.runs == rewriting.ATTEMPTS
    assert_same_rows(table.rows(), BEFORE.slice(runner.runs))
    assert not table.run_folders()
    check(table, BEFORE.slice(runner.runs))


def test_what_could_be_committed_stays_when_one_partition_never_can(kind, tmp_path):
    table = made(kind, tmp_path, ["p"])
    mine = iter(BEFORE.filter(pc.equal(BEFORE["p"], "a"))["id"].to_pylist())
    gone = []

    def other():
        gone.append(next(mine))
        table.table.delete(f"p = 'a' and id = {gone[-1]}")

    with pytest.raises(ConflictError, match=r"each of 5 attempts.* 1 commit of the run succeeded"):
        table.cluster(by=["x", "y"], runner=Meanwhile(other, forever=True))
    expected = BEFORE.filter(pc.invert(pc.is_in(BEFORE["id"], pa.array(gone))))
    assert_same_rows(table.rows(), expected)
    assert not table.strays()
    done = {file.partition for file in table.files() if "zonal-" in str(file.path)}
    assert done == {("b",), ("c",)}


# --- races -----------------------------------------------------------------------------------------------------------


def appending(kind, folder, seed):
    """Append three times; whoever loses a race with others tries again, as applications do."""
    table = home(kind, folder)
    for turn in range(3):
        rows = telemetry(20, seed, first=1000 * seed + 20 * turn)
        for attempt in range(20):
            try:
                table.append(rows)
                break
            except Exception:
                if attempt == 19:
                    raise


def clustering(kind, folder, *columns):
    with suppress(ConflictError):  # a run may give up; rows must be right all the same
        home(kind, folder).cluster(by=list(columns), target_file_size=3000)


@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_two_runs_and_appenders_race_and_no_row_is_lost_or_doubled(kind, tmp_path):
    table = made(kind, tmp_path, ["p"])
    with ThreadPoolExecutor(4) as pool:
        racing = [pool.submit(appending, kind, tmp_path, seed) for seed in (1, 2)]
        racing += [pool.submit(clustering, kind, tmp_path, *columns) for columns in (("x", "y"), ("s",))]
        for one in racing:
            one.result(120)
    added = [telemetry(20, seed, first=1000 * seed + 20 * turn) for seed in (1, 2) for turn in range(3)]
    assert row_counts(table.rows()) == row_counts(pa.concat_tables([BEFORE, *added]))
    assert not table.strays()
