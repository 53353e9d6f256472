"""Appends among other writers: each batch is there exactly once, or the error says that it isn't."""

import json
from concurrent.futures import ThreadPoolExecutor

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from support.appends import append_to
from support.cluster_tables import IN_PLACE, NEWEST, Delta, Iceberg, Meanwhile, assert_same_rows, home, telemetry
from support.local_runner import run_here
from zonal.errors import CommitUnknownError, ConflictError
from zonal.tables.delta import commit as deltacommit
from zonal.tables.registry import open_table


def part(number):
    return telemetry(40, number, first=1000 * number)


@pytest.mark.parametrize("kind", IN_PLACE)
def test_an_append_of_another_writer_meanwhile_is_no_conflict(kind, tmp_path):
    table = home(kind, tmp_path).make([part(0)])
    others = [] if kind == "iceberg v3" else [lambda: table.append(part(1))]  # PyIceberg doesn't write version 3
    append_to(table, part(2), by="x", spark=Meanwhile(*others))
    assert_same_rows(table.rows(), pa.concat_tables([part(0), *([part(1)] if others else []), part(2)]))


@pytest.mark.parametrize("kind", NEWEST)
def test_writers_in_threads_all_get_their_rows_in(kind, tmp_path):
    table = home(kind, tmp_path).make([part(0)])
    append_to(table, part(1), by="x")

    def write(number):
        if number % 2 or kind != "delta":  # PyIceberg's own writer gives up where another one was faster
            return append_to(table, part(number), transaction=("thread", number) if number == 9 else None).rows
        deltalake.write_deltalake(table.root, part(number), mode="append")
        return 40

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(2, 10))) == [40] * 8
    assert_same_rows(table.rows(), pa.concat_tables(map(part, range(10))))
    assert not table.strays()


@pytest.mark.parametrize("kind", NEWEST)
@pytest.mark.parametrize("change", ["schema", "partitioning"])
def test_another_schema_or_partitioning_meanwhile_is_a_conflict_that_commits_nothing(kind, change, tmp_path):
    table = home(kind, tmp_path).make([part(0)])

    def delta():
        if change == "schema":
            rows = part(1).append_column("more", pa.array([1] * 40))
            deltalake.write_deltalake(table.root, rows, mode="append", schema_mode="merge")
        else:
            deltalake.write_deltalake(
                table.root, part(1), mode="overwrite", schema_mode="overwrite", partition_by=["p"]
            )

    def iceberg():
        if change == "schema":
            with table.table.update_schema() as update:
                update.rename_column("s", "t")
        else:
            with table.table.update_spec() as update:
                update.add_identity("p")

    with pytest.raises(ConflictError, match=r"schema or the partitioning .* changed while rows were appended"):
        append_to(table, part(2), by="x", spark=Meanwhile(delta if kind == "delta" else iceberg))
    assert not {*part(2)["id"].to_pylist()} & {*table.rows()["id"].to_pylist()}
    assert not table.run_folders()


def test_a_constraint_that_was_added_meanwhile_is_respected(tmp_path):
    table = Delta(tmp_path).make([part(0)])
    add = Meanwhile(lambda: deltalake.DeltaTable(table.root).alter.add_constraint({"low": "id < 100"}))
    with pytest.raises(Exception, match="CHECK constraint 'low'"):
        append_to(table, part(2), by="x", spark=add)
    assert table.rows().num_rows == 40


@pytest.mark.parametrize("kind", NEWEST)
def test_a_table_that_was_made_anew_gets_no_rows(kind, tmp_path):
    import shutil

    table = home(kind, tmp_path).make([part(0)])

    def anew():
        if kind == "delta":
            shutil.rmtree(table.root / "_delta_log")
        else:
            table.catalog.drop_table("db.t")
        table.make([part(1)])

    with pytest.raises(ConflictError, match="replaced by another table"):
        append_to(table, part(2), by="x", spark=Meanwhile(anew))
    assert_same_rows(table.rows(), part(1))


# --- transactions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_repeated_batch_adds_nothing_and_says_so(kind, tmp_path):
    table = home(kind, tmp_path).make([part(0)])
    assert not append_to(table, part(1), by="x", transaction=("s", 7)).repeated
    version = table.version()
    for number in (7, 3):
        again = append_to(table, part(1), transaction=("s", number))
        assert (again.repeated, again.rows, again.version) == (True, 0, None)
        assert "is in the table already: nothing was added" in again.note
    assert table.version() == version
    assert not append_to(table, part(2), transaction=("other", 7)).repeated
    assert not append_to(table, part(3), transaction=("s", 8)).repeated
    assert_same_rows(table.rows(), pa.concat_tables(map(part, range(4))))


@pytest.mark.parametrize("kind", NEWEST)
def test_the_same_batch_from_two_attempts_at_once_is_there_once(kind, tmp_path):
    table = home(kind, tmp_path).make([part(0)])
    append_to(table, part(1), by="x")
    first = Meanwhile(lambda: append_to(table, part(2), transaction=("s", 1)))
    assert append_to(table, part(2), transaction=("s", 1), spark=first).repeated
    assert_same_rows(table.rows(), pa.concat_tables(map(part, range(3))))
    assert not table.strays()


def test_delta_remembers_batches_over_checkpoints_and_tells_other_engines(tmp_path):
    table = Delta(tmp_path).make([part(0)])
    append_to(table, part(1), by="x", transaction=("s", 7))
    assert table.table.transaction_version("s") == 7
    table.append(part(3))
    table.table.create_checkpoint()
    for version in (0, 1):
        (table.root / "_delta_log" / f"{version:020d}.json").unlink()
    assert append_to(table, part(1), transaction=("s", 7)).repeated
    properties = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("theirs", 5)])
    deltalake.write_deltalake(table.root, part(2), mode="append", commit_properties=properties)
    assert append_to(table, part(2), transaction=("theirs", 5)).repeated


def test_iceberg_remembers_batches_whose_snapshots_expired_but_not_those_rolled_back(tmp_path):
    table = Iceberg(tmp_path).make([part(0)])
    append_to(table, part(1), by="x", transaction=("s", 7))
    batch = table.version()
    table.append(part(2))
    table.table.maintenance.expire_snapshots().by_id(batch).commit()
    assert append_to(table, part(1), transaction=("s", 7)).repeated
    before = table.version()
    append_to(table, part(3), transaction=("s", 8))
    table.table.manage_snapshots().rollback_to_snapshot(before).commit()
    assert not append_to(table, part(3), transaction=("s", 8)).repeated
    assert_same_rows(table.rows(), pa.concat_tables(map(part, range(4))))


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEWEST)
def test_a_failure_before_the_commit_leaves_the_table_as_it_was(kind, tmp_path):
    table = home(kind, tmp_path).make([part(0)])
    listing = table.listing()

    def broken(*given):
        run_here(*given)
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        append_to(table, part(1), by="x", spark=broken)
    assert table.listing() == listing


@pytest.mark.parametrize("kind", NEWEST)
def test_a_row_that_is_lost_on_the_way_is_noticed(kind, tmp_path):
    table = home(kind, tmp_path).make([part(0)])
    with pytest.raises(Exception, match="40 rows were read and 0 written"):
        append_to(table, part(1), by="x", spark=lambda *given: (run_here(*given)[0], []))
    assert_same_rows(table.rows(), part(0))


@pytest.mark.parametrize("error", [CommitFailedException, CommitStateUnknownException])
def test_a_lost_answer_of_the_catalog_is_recognized(error, tmp_path, monkeypatch):
    table = Iceberg(tmp_path).make([part(0)])
    real, lost = SqlCatalog.commit_table, []

    def commit(*given, **named):
        done = real(*given, **named)
        if not lost:
            lost.append(done)
            raise error("the answer got lost")
        return done

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    assert append_to(table, part(1), by="x").version == table.version()
    assert len(lost) == 1
    assert_same_rows(table.rows(), pa.concat_tables([part(0), part(1)]))


def test_an_unknown_outcome_keeps_the_files_and_a_repeated_batch_finds_out(tmp_path, monkeypatch):
    table = Delta(tmp_path).make([part(0)])
    real = deltacommit.put_version

    def put(*given, **named):
        real(*given, **named)
        raise CommitUnknownError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(deltacommit, "put_version", put)
        with pytest.raises(CommitUnknownError):
            append_to(table, part(1), by="x", transaction=("s", 1))
    assert append_to(table, part(1), transaction=("s", 1)).repeated
    assert_same_rows(table.rows(), pa.concat_tables([part(0), part(1)]))


def test_a_commit_says_what_it_did(tmp_path):
    table = Delta(tmp_path).make([part(0)], ["p"])
    done = append_to(table, part(1), by="x")
    (latest, *_) = table.table.history()
    assert (latest["operation"], latest["isBlindAppend"]) == ("WRITE", True)
    assert latest["operationParameters"]["mode"] == "Append"
    assert latest["operationMetrics"]["numOutputRows"] in (40, "40")
    assert json.loads(latest["operationParameters"]["partitionBy"]) == ["p"]
    other = Iceberg(tmp_path / "other").make([part(0)])
    append_to(other, part(1), by="x")
    summary = other.table.current_snapshot().summary
    counts = (summary["added-records"], summary["total-records"], summary["total-data-files"])
    assert (summary.operation.value, counts) == ("append", ("40", "80", "2"))
    assert open_table(table.name).snapshot().commits[done.version].kind == "append"
