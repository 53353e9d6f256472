"""Rows that another writer deletes by vectors or positions during a run stay deleted, and the run's work is kept."""

import json
import math
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cleaning import cleaned, now
from support.cluster_tables import IN_A_BUCKET, STORED, Meanwhile, parts_of, telemetry
from support.delta_rewrites import inline_vector, stored_vector
from support.delta_tables import field
from support.delta_tables import struct as struct_type
from support.delta_vectors import Vectored, assert_rows
from support.iceberg_positions import Positioned
from support.mirrored_tables import MirroredVectored
from support.store_tables import StoredPositioned
from zonal.errors import ConflictError, TableError
from zonal.rewriting import carry_over
from zonal.rewriting import in_place as rewriting
from zonal.tables.delta.table import DeltaTable
from zonal.tables.iceberg.table import IcebergTable

BEFORE = telemetry(240)
KINDS = ("long", "long", "double", "string", "string")
FIELDS = [field(name, kind) for name, kind in zip(BEFORE.column_names, KINDS, strict=True)]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(rewriting, "_FIRST_PAUSE", 0.001)


HOMES = {"delta": Vectored, STORED: MirroredVectored, "iceberg": Positioned}


@pytest.fixture(params=["delta", IN_A_BUCKET, "iceberg", "iceberg in a bucket"])
def home(request, tmp_path):
    """A place for a table whose new files can begin with deletes."""
    if request.param == "iceberg in a bucket":
        return StoredPositioned(request.getfixturevalue("server"), tmp_path)
    return HOMES[request.param](tmp_path)


@pytest.fixture
def table(home):
    """Three files of 80 rows."""
    return home.create(parts_of(BEFORE, 3), FIELDS)


@pytest.fixture(params=["delta", IN_A_BUCKET])
def delta(request, tmp_path):
    """A place for one in Delta."""
    return HOMES[request.param](tmp_path)


@pytest.fixture
def vectored(delta):
    """Three files of 80 rows there."""
    return delta.create(parts_of(BEFORE, 3), FIELDS)


def without(rows, positions):
    kept = np.setdiff1d(np.arange(rows.num_rows), positions)
    return rows.take(pa.array(kept))


def carried(table, other, expected, *, deletes, versions=1, **asked):
    """Cluster while another writer does something: all work is kept, and the table has the expected rows."""
    runner = Meanwhile(other)
    done = table.cluster(by=["x", "y"], runner=runner, **asked)
    assert (done.run.conflicts, len(done.run.versions), runner.runs) == (0, versions, versions)
    assert done.run.carried_deletes == deletes
    assert_rows(table, expected)
    assert not table.strays()
    return done


def redone(table, other, expected, **asked):
    """Cluster while another writer does something: the work is done again, and nothing is carried over."""
    runner = Meanwhile(other)
    done = table.cluster(by=["x", "y"], runner=runner, **asked)
    assert (done.run.conflicts, done.run.carried_deletes, runner.runs) == (1, 0, 2)
    assert_rows(table, expected)
    assert not table.strays()


# --- what is carried over --------------------------------------------------------------------------------------------


def test_rows_that_were_deleted_meanwhile_are_deleted_in_the_new_files(table):
    expected = without(BEFORE, [83, 84, 85, 239])

    def other():
        table.delete("1.parquet", [3, 4, 5])
        table.delete("2.parquet", [79])

    done = carried(table, other, expected, deletes=4, target_file_size=2000)
    assert done.change.added_files > 1, "several files may hold a deleted row"
    assert done.change.rows == 236, "rows that the new files have for readers"
    again = table.cluster(by=["x", "y"], target_file_size=2000)
    assert not again.run.versions, "few deletes are no reason to rewrite a file"
    table.cluster(by=["x", "y"], full=True)
    assert_rows(table, expected)


def test_the_commit_says_what_it_did(vectored):
    vectored.delete("0.parquet", [7])
    done = carried(vectored, lambda: vectored.delete("1.parquet", [3, 4]), without(BEFORE, [7, 83, 84]), deletes=2)
    version = done.run.versions[0]
    (info,), removes, adds = (vectored.bodies(kind, version) for kind in ("commitInfo", "remove", "add"))
    metrics = info["operationMetrics"]
    with_vectors = [add for add in adds if "deletionVector" in add]
    assert metrics["numDeletionVectorsRemoved"] == "2", "those that the files have now, not when they were read"
    assert metrics["numDeletionVectorsAdded"] == str(len(with_vectors))
    assert metrics["numCarriedDeletes"] == "2"
    assert {remove["path"]: remove.get("deletionVector") for remove in removes} == {
        path: add.get("deletionVector") for path, add in vectored.live.items()
    }
    assert sum(add["deletionVector"]["cardinality"] for add in with_vectors) == 2
    for add in adds:
        stats = json.loads(add["stats"])
        assert stats["tightBounds"] == ("deletionVector" not in add), "bounds are those of deleted rows, too"
        assert stats["numRecords"] == pq.read_metadata(vectored.root / add["path"]).num_rows
        assert not add["dataChange"]


@pytest.mark.parametrize("make", [stored_vector, lambda _, positions: inline_vector(positions)], ids=["file", "inline"])
def test_rows_that_were_deleted_before_are_not_deleted_twice(vectored, make):
    vectored.delete("1.parquet", [3, 9], make)
    done = carried(
        vectored, lambda: vectored.delete("1.parquet", [3, 5, 9], make), without(BEFORE, [83, 85, 89]), deletes=1
    )
    assert done.change.rows == 237


def test_the_same_deletes_in_another_file_of_vectors_are_no_conflict(vectored):
    vectored.delete("1.parquet", [3, 9])
    carried(vectored, lambda: vectored.delete("1.parquet", [3, 9]), without(BEFORE, [83, 89]), deletes=0)


def test_an_append_meanwhile_survives(table):
    more = telemetry(40, 1, first=240)

    def other():
        table.delete("1.parquet", [0])
        table.append(more)

    runner = Meanwhile(other)
    done = table.cluster(by=["x", "y"], runner=runner)
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 1)
    assert_rows(table, pa.concat_tables([without(BEFORE, [80]), more]))


@pytest.mark.parametrize("copies", [1, 2, 13])
def test_of_equal_rows_as_many_are_deleted_as_were(copies, home):
    """Every third row of the first 120 is the same; the old files have 100 rows each."""
    rows = pa.concat_tables([BEFORE.slice(0, 3)] * 40 + [BEFORE.slice(3, 80)])
    table = home.create(parts_of(rows, 2), FIELDS)
    gone = [9 * number for number in range(copies)]

    def other():
        table.delete("0.parquet", [place for place in gone if place < 100])
        if gone[-1] >= 100:
            table.delete("1.parquet", [place - 100 for place in gone if place >= 100])

    carried(table, other, without(rows, gone), deletes=copies, target_file_size=2000)


def test_a_delete_between_carrying_and_commit_is_carried_too(table, monkeypatch):
    expected = without(BEFORE, [83, 84, 85])
    later = iter([[3, 4], [3, 4, 5]])

    def write(*given):
        written = carrying_write(*given)
        if (positions := next(later, None)) is not None:
            table.delete("1.parquet", positions)
        return written

    carrying_write = carry_over.write_deletes
    monkeypatch.setattr(carry_over, "write_deletes", write)
    carried(table, lambda: table.delete("1.parquet", [3]), expected, deletes=3)
    assert len(table.stored_deletes()) == 1, "deletes of earlier attempts are gone"


def test_deletes_without_end_are_carried_some_times_and_then_the_work_is_done_again(table, monkeypatch):
    carries = []

    def write(*given):
        carries.append(len(carries))
        table.delete("1.parquet", list(range(len(carries) + 1)))
        return carrying_write(*given)

    carrying_write = carry_over.write_deletes
    monkeypatch.setattr(carry_over, "write_deletes", write)
    done = table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.delete("1.parquet", [0])))
    assert (done.run.conflicts, done.run.carried_deletes) == (1, 0)
    assert len(carries) == carry_over.CARRIES
    assert_rows(table, without(BEFORE, range(80, 80 + len(carries) + 1)))
    assert not table.strays()


# --- values ----------------------------------------------------------------------------------------------------------


def floats(*bits):
    return [struct.unpack("<d", struct.pack("<Q", each))[0] for each in bits]


NANS = floats(0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000)


@pytest.mark.parametrize("gone", range(8))
def test_values_that_only_look_equal_are_told_apart(gone, tmp_path):
    values = np.array([0.0, -0.0, *NANS, 1.0, math.inf, 0.0])
    numbers = pa.array([*values.tolist()[:7], None], pa.float64())
    numbers = pa.Array.from_buffers(pa.float64(), 8, [numbers.buffers()[0], pa.py_buffer(values.tobytes())])
    rows = pa.table({"x": pa.array([1] * 8), "y": numbers})
    table = Vectored(tmp_path).create(
        [rows, telemetry(20).select(["x", "y"])], [field("x", "long"), field("y", "double")]
    )
    done = table.cluster(by=["x"], runner=Meanwhile(lambda: table.delete("0.parquet", [gone])))
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 1)
    found = bits_of(table.rows())
    assert found == bits_of(
        pa.concat_tables([rows.take([n for n in range(8) if n != gone]), telemetry(20).select(["x", "y"])])
    )


def bits_of(rows):
    """Rows with the bits of their floats; null has none."""
    values = rows["y"].combine_chunks()
    bits = values.fill_null(0.5).to_numpy(zero_copy_only=False).view(np.uint64).tolist()
    shown = [number if valid else -1 for number, valid in zip(bits, values.is_valid().to_pylist(), strict=True)]
    return sorted(zip(rows["x"].to_pylist(), shown, strict=True))


def test_nested_values_and_nulls_are_compared_whole(delta):
    kind = pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())})
    nested = [None, {"a": None, "b": None}, {"a": 1, "b": []}, {"a": 1, "b": [None]}, {"a": 1, "b": ["u", "v"]},
              {"a": 1, "b": ["v", "u"]}]  # fmt: skip
    maps = [None, [], [("k", 1.0)], [("k", None)], [("k", 1.0), ("l", -0.0)], [("k", 1.0), ("l", 0.0)]]
    rows = pa.table(
        {
            "x": pa.array([5] * 36),
            "st": pa.array([one for one in nested for _ in maps], kind),
            "m": pa.array(maps * 6, pa.map_(pa.string(), pa.float64())),
        }
    )
    array = {"type": "array", "elementType": "string", "containsNull": True}
    mapped = {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}
    fields = [
        field("x", "long"),
        field("st", struct_type(field("a", "integer"), field("b", array))),
        field("m", mapped),
    ]
    table = delta.create([rows, rows], fields)
    gone = [0, 7, 14, 21, 28, 35]
    done = table.cluster(by=["x"], runner=Meanwhile(lambda: table.delete("1.parquet", gone)))
    assert (done.run.conflicts, done.run.carried_deletes) == (0, 6)
    assert_rows(table, pa.concat_tables([rows, without(rows, gone)]))


def test_equal_rows_of_other_partitions_stay(home):
    rows = pa.table({"x": pa.array([1, 2, 3] * 20), "y": pa.array([0.5] * 60)})
    fields = [field("x", "long"), field("y", "double"), field("p", "string")]
    values = [{"p": name} for name in ("a", "b", None)]
    table = home.create([rows] * 3, fields, partitioning=["p"], values=values)
    parts = [rows.append_column("p", pa.array([each["p"]] * 60, pa.string())) for each in values]
    expected = pa.concat_tables([parts[0], without(parts[1], [0, 1]), without(parts[2], [59])])

    def other():
        table.delete("1.parquet", [0, 1])
        table.delete("2.parquet", [59])

    carried(table, other, expected, deletes=3)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_by_their_mapping(mode, delta):
    def mapped(name, kind, number):
        return field(
            name, kind, metadata={"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
        )

    schema = pa.schema(
        [pa.field(f"c{n}", kind, True, {"PARQUET:field_id": str(n)}) for n, kind in enumerate(BEFORE.schema.types)]
    )
    stored = pa.Table.from_arrays(BEFORE.columns, schema=schema)
    fields = [mapped(each["name"], each["type"], number) for number, each in enumerate(FIELDS)]
    table = delta.create(
        parts_of(stored, 3), fields, more_features=["columnMapping"], configuration={"delta.columnMapping.mode": mode}
    )
    carried(table, lambda: table.delete("2.parquet", [1, 2]), without(BEFORE, [161, 162]), deletes=2)


# --- what isn't ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [[9], [4, 9], []], ids=["fewer", "others", "none"])
def test_a_row_that_is_back_is_a_conflict(vectored, after):
    vectored.delete("1.parquet", [3, 9])
    redone(vectored, lambda: vectored.delete("1.parquet", after), without(BEFORE, [80 + place for place in after]))


def test_a_file_that_was_removed_is_a_conflict(vectored):
    gone = {"path": "1.parquet", "dataChange": True, "deletionTimestamp": 0}
    redone(vectored, lambda: vectored.commit({"remove": gone}), without(BEFORE, range(80, 160)))


def test_more_deletes_than_a_rewrite_is_worth_are_a_conflict(table, monkeypatch):
    monkeypatch.setattr(carry_over, "ALWAYS", 3)
    redone(table, lambda: table.delete("1.parquet", [0, 1, 2, 3]), without(BEFORE, [80, 81, 82, 83]))


def test_rows_too_large_for_memory_are_a_conflict(table, monkeypatch):
    monkeypatch.setattr(carry_over, "MOST_BYTES", 10)
    redone(table, lambda: table.delete("1.parquet", [0]), without(BEFORE, [80]))


def test_a_new_file_heavy_with_deletes_is_a_conflict(table):
    redone(table, lambda: table.delete("1.parquet", list(range(75))), without(BEFORE, range(80, 155)))


def test_where_rows_have_ids_it_is_a_conflict(delta):
    table = delta.create(
        parts_of(BEFORE, 1), FIELDS, more_features=["rowTracking", "domainMetadata"],
        configuration={"delta.rowTrackingSuspended": "false"},
    )  # fmt: skip
    redone(table, lambda: table.delete("0.parquet", [0]), without(BEFORE, [0]))


def test_a_table_that_takes_no_new_vectors_gets_none(tmp_path):
    table = Vectored(tmp_path).create(
        parts_of(BEFORE, 3), FIELDS, configuration={"delta.enableDeletionVectors": "false"}
    )
    redone(table, lambda: table.delete("1.parquet", [0]), without(BEFORE, [80]))


def test_a_row_that_new_files_lack_is_a_conflict(table, monkeypatch):
    monkeypatch.setattr(carry_over, "find_twins", lambda *_: None)
    redone(table, lambda: table.delete("1.parquet", [0]), without(BEFORE, [80]))


def test_a_file_that_cannot_be_read_is_a_conflict(table, monkeypatch):
    def broken(*_):
        raise OSError("no route")

    monkeypatch.setattr(carry_over, "find_twins", broken)
    redone(table, lambda: table.delete("1.parquet", [0]), without(BEFORE, [80]))


def test_only_partitions_that_changed_otherwise_are_done_again(tmp_path):
    fields, values = [*FIELDS[:-1], field("p", "string")], [{"p": name} for name in "abc"]
    parts = [part.drop_columns(["p"]) for part in parts_of(BEFORE, 3)]
    table = Vectored(tmp_path).create(parts, fields, partitioning=["p"], values=values)
    rows = [part.append_column("p", pa.array([name] * 80)) for part, name in zip(parts, "abc", strict=True)]

    def other():
        table.delete("0.parquet", [5])
        table.commit({"remove": {"path": "1.parquet", "dataChange": True, "deletionTimestamp": 0}})
        table.append(parts[1].slice(0, 60), values={"p": "b"})

    runner = Meanwhile(other)
    done = table.cluster(by=["x", "y"], runner=runner)
    assert (done.run.conflicts, done.run.carried_deletes, runner.runs) == (1, 1, 2)
    assert_rows(table, pa.concat_tables([without(rows[0], [5]), rows[1].slice(0, 60), rows[2]]))
    assert not table.strays()


# --- proof -----------------------------------------------------------------------------------------------------------


def test_deletes_that_are_not_as_they_were_written_are_never_committed(table, monkeypatch):
    def write(form, writing, positions):
        return carrying_write(form, writing, {path: deleted + 1 for path, deleted in positions.items()})

    carrying_write = carry_over.write_deletes
    monkeypatch.setattr(carry_over, "write_deletes", write)
    with pytest.raises(TableError, match=r"deletes of the new file .* aren't as they were written"):
        table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.delete("1.parquet", [0])))
    assert_rows(table, without(BEFORE, [80]))
    assert not table.stored_deletes()
    assert not table.run_folders()


def test_a_commit_that_is_reported_as_failed_keeps_its_deletes(table, monkeypatch):
    """Deletes of a commit that happened are the table's, whatever its client heard."""
    kind = {"delta": DeltaTable, "iceberg": IcebergTable}[table.format]
    commit = kind.commit

    def heard(self, rewrite, *, sending):
        version = commit(self, rewrite, sending=sending)
        if rewrite.carried is not None:
            raise TableError("no answer")
        return version

    monkeypatch.setattr(kind, "commit", heard)
    with pytest.raises(TableError, match=r"the table has \d+ of its new files"):
        table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.delete("1.parquet", [0])))
    assert table.stored_deletes()
    assert_rows(table, without(BEFORE, [80]))


def test_deletes_of_a_commit_that_is_reported_as_a_conflict_stay(table, monkeypatch):
    """The work is done again from a version that has them."""
    kind = {"delta": DeltaTable, "iceberg": IcebergTable}[table.format]
    commit, told = kind.commit, []

    def heard(self, rewrite, *, sending):
        version = commit(self, rewrite, sending=sending)
        if rewrite.carried is not None and not told:
            told.extend(table.stored_deletes())
            raise ConflictError("no answer", rewrite.base.files.paths.take(rewrite.removed).to_pylist())
        return version

    monkeypatch.setattr(kind, "commit", heard)
    table.cluster(by=["x", "y"], runner=Meanwhile(lambda: table.delete("1.parquet", [0])))
    assert told
    assert table.stored_deletes() == told
    assert_rows(table, without(BEFORE, [80]))


def test_a_clean_up_leaves_carried_deletes_as_long_as_a_version_has_them(table):
    expected = without(BEFORE, [80])
    carried(table, lambda: table.delete("1.parquet", [0]), expected, deletes=1)
    (deletes,) = table.stored_deletes()
    cleaned(table, now())
    assert not list(table.root.glob("*.parquet")) + list(table.root.glob("data/0*.parquet")), "old versions expired"
    assert table.stored_deletes() == [deletes]
    assert_rows(table, expected)
    table.cluster(by=["x", "y"], full=True)
    cleaned(table, now())
    assert table.stored_deletes() == []
    assert_rows(table, expected)
