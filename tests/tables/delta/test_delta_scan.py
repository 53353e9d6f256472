"""Workers read the rows of Delta tables: physical columns, partition values, row ids and deletion vectors."""

import json
from datetime import date, datetime, timezone
from decimal import Decimal

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.delta_rewrites import bitmap, data_file, everything, inline_vector, read_rows, stored_vector
from support.delta_tables import ADD, CHECKPOINT, features, field, metadata, protocol, remove, struct
from zonal.errors import ColumnError, TableError
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import FIELD_ID
from zonal.tables.delta.table import DeltaTable
from zonal.tables.delta.vectors import z85

LAYOUT = Layout("zorder", ("x",))


def scan(where, **options):
    table = DeltaTable(str(where))
    snapshot = table.snapshot()
    return table.scan(snapshot, everything(snapshot), **options)


def field_ids(kind, name=""):
    """All field ids of a schema or a type, by dotted path."""
    found = {}
    count = len(kind) if isinstance(kind, pa.Schema) else kind.num_fields
    for child in (kind.field(number) for number in range(count)):
        if FIELD_ID in (child.metadata or {}):
            found[name + child.name] = int(child.metadata[FIELD_ID])
        found |= field_ids(child.type, f"{name}{child.name}.")
    return found


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_a_scan_has_the_columns_of_the_files_without_those_that_partition(tmp_path):
    rows = pa.table({"x": [1, 2], "p": ["a", "b"], "g": pa.array([{"y": 1}, {"y": None}])})
    deltalake.write_deltalake(tmp_path, rows, partition_by=["p"])
    found = scan(tmp_path)
    assert found.reading.schema.names == ["x", "g"]
    assert not found.reading.by_id
    assert found.columns == {"x": "x", "g.y": "g.y"}
    assert [source.constants for source in found.sources] == [{}, {}]
    assert sorted(source.partition for source in found.sources) == [0, 1]
    assert sum(source.rows for source in found.sources) == 2
    assert {source.first_row_id for source in found.sources} == {None}


def test_chosen_columns_come_in_their_order_with_partition_values(tmp_path):
    rows = pa.table({"x": [1, 2], "y": [3, 4], "p": pa.array([date(2024, 1, 1), None])})
    deltalake.write_deltalake(tmp_path, rows, partition_by=["p"])
    found = scan(tmp_path, columns=["y", "p", "x"])
    assert found.reading.schema.names == ["y", "p", "x"]
    assert found.reading.schema.field("p").type == pa.date32()
    read = pa.concat_tables(read_rows(found)).sort_by("x").to_pylist()
    assert read == [{"y": 3, "p": date(2024, 1, 1), "x": 1}, {"y": 4, "p": None, "x": 2}]
    with pytest.raises(ColumnError, match="Did you mean 'x'"):
        scan(tmp_path, columns=["xx"])


MAPPED = (
    field("id", "long", metadata={"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}),
    field(
        "geo",
        struct(
            field("lat", "double", metadata={"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "c3"})
        ),
        metadata={"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "c2"},
    ),
    field(
        "m",
        {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "array", "elementType": "long", "containsNull": True},
            "valueContainsNull": True,
        },
        metadata={
            "delta.columnMapping.id": 4,
            "delta.columnMapping.physicalName": "c4",
            "delta.columnMapping.nested.ids": {"c4.key": 5, "c4.value": 6, "c4.value.element": 7},
        },
    ),
    field("p", "integer", metadata={"delta.columnMapping.id": 8, "delta.columnMapping.physicalName": "c8"}),
)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_have_physical_names_and_ids_at_every_level(log, mode):
    head = metadata(*MAPPED, partitioning=["p"], configuration={"delta.columnMapping.mode": mode})
    log.commit(protocol(2, 5), head, data_file(log, "f", pa.table({"col-1": [1]}), values={"c8": "7"}))
    found = scan(log)
    assert found.reading.by_id == (mode == "id")
    assert found.reading.schema.names == ["col-1", "c2", "c4"]
    ids = field_ids(found.reading.schema)
    assert {ids["col-1"], ids["c2"], ids["c2.c3"], ids["c4"]} == {1, 2, 3, 4}
    assert sorted(ids.values()) == [1, 2, 3, 4, 5, 6, 7], "elements, keys and values have ids, too"
    assert found.columns == {"id": "col-1", "geo.lat": "c2.c3", "m": "c4"}
    chosen = scan(log, columns=["p", "id"])
    assert chosen.reading.schema.names == ["c8", "col-1"]
    assert chosen.sources[0].constants == {"c8": pa.scalar(7, pa.int32())}
    table = DeltaTable(str(log))
    layout = Layout("zorder", ("id",), bloom_columns=("geo.lat",))
    written = table.writing(table.snapshot(), layout=layout, run="r")
    assert written.bloom_columns == ("c2.c3",)
    assert written.subfolders == ("c8=7",), "the names of partition values in the log"


def test_required_columns_are_read_as_nullable(log):
    member = field("x", "long") | {"nullable": False}
    log.commit(protocol(), metadata(member), data_file(log, "f", pa.table({"x": [1, None]})))
    assert pa.concat_tables(read_rows(scan(log)))["x"].to_pylist() == [1, None]


# --- partition values -------------------------------------------------------------------------------------------------

TEXTS = {
    "long": ("-5", -5),
    "string": ("a b/ü%", "a b/ü%"),
    "date": ("2024-02-29", date(2024, 2, 29)),
    "boolean": ("true", True),
    "binary": ("\\u0000\\u00FF", b"\x00\xff"),
    "double": ("1.5E-3", 0.0015),
    "decimal(38,2)": (f"{'9' * 36}.25", Decimal(f"{'9' * 36}.25")),
    "timestamp": ("2024-01-01T01:02:03.456789Z", datetime(2024, 1, 1, 1, 2, 3, 456789, timezone.utc)),
    "timestamp_ntz": ("2024-01-01 01:02:03.456789", datetime(2024, 1, 1, 1, 2, 3, 456789)),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_partition_values_are_typed(log, kind):
    text, expected = TEXTS[kind]
    head = (features("timestampNtz"), metadata(field("x", "long"), field("p", kind), partitioning=["p"]))
    files = [
        data_file(log, name, pa.table({"x": [1]}), values={"p": value}) for name, value in (("a", text), ("b", ""))
    ]
    log.commit(*head, *files)
    values = [source.constants["p"].as_py() for source in scan(log, columns=["p"]).sources]
    assert values == [expected, None], "an empty text is null"


def test_a_timestamp_without_a_zone_is_read_as_deltalake_writes_it(tmp_path):
    moment = datetime(2024, 7, 1, 1, 2, 3, 456789, timezone.utc)
    rows = pa.table({"x": [1], "p": pa.array([moment], pa.timestamp("us", "UTC"))})
    deltalake.write_deltalake(tmp_path, rows, partition_by=["p"])
    assert scan(tmp_path, columns=["p"]).sources[0].constants["p"].as_py() == moment


def test_a_partition_value_of_another_type_is_refused_with_its_column(log):
    head = metadata(field("x", "long"), field("p", "long"), partitioning=["p"])
    log.commit(protocol(), head, data_file(log, "a", pa.table({"x": [1]}), values={"p": "seven"}))
    scan(log)
    with pytest.raises(TableError, match="'seven' of column 'p'"):
        scan(log, columns=["p"])


# --- deletion vectors -------------------------------------------------------------------------------------------------


def test_z85_is_the_alphabet_of_zeromq():
    assert z85("HelloWorld") == bytes.fromhex("864fd26fb559f75b")
    for broken in ("Hell", "Hell\u00e9", "~~~~~"):
        with pytest.raises(ValueError, match=r"Base85|multiple"):
            z85(broken)


@pytest.mark.parametrize("kind", ["inline", "stored", "prefixed", "absolute"])
@pytest.mark.parametrize("place", ["commit", "checkpoint"])
def test_deletion_vectors_are_found_and_applied(log, kind, place):
    vector = {
        "inline": lambda: inline_vector([1, 3]),
        "stored": lambda: stored_vector(log, [1, 3]),
        "prefixed": lambda: stored_vector(log, [1, 3], prefix="ab"),
        "absolute": lambda: stored_vector(log, [1, 3], absolute=True),
    }[kind]()
    head = (features("deletionVectors"), metadata(field("x", "long")))
    log.commit(*head, data_file(log, "f", pa.table({"x": range(5)}), deletionVector=vector))
    if place == "checkpoint":
        actions = [json.loads(line) for line in (log.log / f"{0:020d}.json").read_text().splitlines()]
        log.checkpoint(*actions).forget(0)
    found = scan(log)
    (source,) = found.sources
    assert source.vector.rows == 2
    if kind == "inline":
        assert source.vector.inline == bitmap([1, 3])
    else:
        assert source.vector.offset == 1
        assert source.vector.size == len(bitmap([1, 3])) + 8, "length and checksum belong to the frame"
    assert read_rows(found)[0]["x"].to_pylist() == [0, 2, 4]


@pytest.mark.parametrize(
    "change", [{"storageType": "x"}, {"pathOrInlineDv": "short"}, {"sizeInBytes": 7}, {"cardinality": "many"}]
)
def test_a_broken_descriptor_is_refused_with_the_file(log, change):
    head = (features("deletionVectors"), metadata(field("x", "long")))
    good = data_file(log, "f", pa.table({"x": range(5)}))
    broken = {"add": good["add"] | {"deletionVector": inline_vector([1]) | change}}
    log.commit(*head, broken)
    with pytest.raises(TableError):
        scan(log)


# --- row tracking -----------------------------------------------------------------------------------------------------

TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-1",
}


def test_tracked_rows_keep_their_ids(log):
    head = (
        protocol(1, 7, writer_features=["rowTracking", "domainMetadata"]),
        metadata(field("x", "long"), configuration=TRACKED),
    )
    fresh = data_file(log, "a", pa.table({"x": [1, 2]}), baseRowId=100, defaultRowCommitVersion=4)
    ids = {"_row-id-1": pa.array([7, None]), "_row-version-1": pa.array([None, 2])}
    moved = data_file(log, "b", pa.table({"x": [3, 4]} | ids), baseRowId=200, defaultRowCommitVersion=5)
    log.commit(*head, fresh, moved)
    found = scan(log)
    assert found.reading.schema.names == ["x", "_row-id-1", "_row-version-1"]
    assert (found.reading.row_id, found.reading.row_version) == ("_row-id-1", "_row-version-1")
    assert [(source.first_row_id, source.row_version) for source in found.sources] == [(100, 4), (200, 5)]
    rows = pa.concat_tables(read_rows(found))
    assert rows["_row-id-1"].to_pylist() == [100, 101, 7, 201]
    assert rows["_row-version-1"].to_pylist() == [4, 4, 5, 2]
    assert scan(log, columns=["x"]).reading.schema.names == ["x"], "another table has row ids of its own"
    assert scan(log).columns == {"x": "x"}


def test_rows_that_are_tracked_but_have_no_ids_are_refused(log):
    head = (protocol(1, 7, writer_features=["rowTracking", "domainMetadata"]),)
    log.commit(*head, metadata(field("x", "long"), configuration=TRACKED), data_file(log, "a", pa.table({"x": [1]})))
    with pytest.raises(TableError, match="no row ids for"):
        scan(log)
    nameless = {"delta.enableRowTracking": "true"}
    log.commit(metadata(field("x", "long"), configuration=nameless))
    with pytest.raises(TableError, match="materializedRowIdColumnName isn't set"):
        scan(log)


# --- snapshots --------------------------------------------------------------------------------------------------------


def test_every_kind_of_checkpoint_delivers_the_fields_of_files(log):
    schema = pa.struct([*ADD, pa.field("baseRowId", pa.int64()), pa.field("defaultRowCommitVersion", pa.int64())])
    wider = CHECKPOINT.set(CHECKPOINT.get_field_index("add"), pa.field("add", schema))
    head = [
        protocol(1, 7, writer_features=["rowTracking", "domainMetadata"]),
        metadata(field("x", "long"), configuration=TRACKED),
    ]
    file = data_file(log, "a b", pa.table({"x": [1, 2]}), baseRowId=100, defaultRowCommitVersion=4, tags={"k": "v"})
    file["add"]["path"] = "a%20b"
    log.commit(*head, file)
    log.checkpoint(*head, middle=f".{1:010d}.{2:010d}", schema=wider)
    log.checkpoint(file, middle=f".{2:010d}.{2:010d}", schema=wider)
    log.forget(0)
    table = DeltaTable(str(log))
    (live,) = table._chosen(table.snapshot(), np.array([0]))[1]
    assert (live.logged, live.tags, live.first_row_id, live.row_version) == ("a%20b", {"k": "v"}, 100, 4)
    assert read_rows(scan(log))[0]["_row-id-1"].to_pylist() == [100, 101]


def test_a_scan_finds_its_files_in_a_log_that_was_checkpointed_since(tmp_path):
    for number in range(3):
        deltalake.write_deltalake(tmp_path, pa.table({"x": [number]}), mode="append")
    snapshot = DeltaTable(str(tmp_path)).snapshot()
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    deltalake.write_deltalake(tmp_path, pa.table({"x": [9]}), mode="overwrite")
    found = DeltaTable(str(tmp_path)).scan(snapshot, np.array([2, 0]))
    assert [source.path for source in found.sources] == snapshot.files.paths.take(pa.array([2, 0])).to_pylist()
    assert [source.number for source in found.sources] == [2, 0]


def test_the_newest_table_forgets_the_version_that_was_asked_for(log):
    log.commit(protocol(), metadata(field("x", "long")), data_file(log, "a", pa.table({"x": [1]}))).commit(remove("a"))
    old = DeltaTable(str(log), version=0)
    assert len(old.snapshot().files) == 1
    assert old.newest().snapshot().version == 1
    assert old.snapshot().version == 0


# --- writing ----------------------------------------------------------------------------------------------------------


def writing(where, layout=LAYOUT):
    table = DeltaTable(str(where))
    return table.writing(table.snapshot(), layout=layout, run="run-1")


def test_new_files_lie_in_a_visible_folder_of_the_run(log):
    log.commit(protocol(), metadata(field("x", "long")), data_file(log, "a", pa.table({"x": [1]})))
    found = writing(log)
    assert found.folder == f"{log}/zonal-{LAYOUT.id}-run-1"
    assert found.compression is None, "the files' own codec, whatever it is"
    assert found.schema.names == ["x"]
    assert not (log.path / f"zonal-{LAYOUT.id}-run-1").exists(), "nothing is written yet"


@pytest.mark.parametrize(("asked", "codec"), [("ZSTD", "zstd"), ("uncompressed", "none"), ("lz4_raw", "lz4")])
def test_the_table_may_ask_for_a_codec(log, asked, codec):
    head = metadata(field("x", "long"), configuration={"delta.parquet.compression.codec": asked})
    log.commit(protocol(), head)
    assert writing(log).compression == codec
    pq.write_table(pa.table({"x": [1]}), log.path / "f", compression=codec)


def test_what_a_rewrite_cannot_keep_is_refused_by_name(log):
    bloom = Layout("zorder", ("x",), bloom_columns=("p",))
    head = metadata(field("x", "long"), field("p", "string"), partitioning=["p"])
    log.commit(protocol(), head)
    with pytest.raises(ColumnError, match="'p' can't have a bloom filter"):
        writing(log, bloom)
    log.commit(metadata(field("x", "long"), configuration={"delta.parquet.compression.codec": "zst"}))
    with pytest.raises(TableError, match="Did you mean 'zstd'"):
        writing(log)
    table = DeltaTable(str(log))
    assert table.writing(table.snapshot(), layout=LAYOUT, run="r", compression="gzip").compression == "gzip"
    log.commit(protocol(1, 7, writer_features=["icebergCompatV2"]), metadata(field("x", "long")))
    with pytest.raises(TableError, match="table feature icebergCompatV2"):
        writing(log)
