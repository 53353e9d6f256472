"""What workers are told of Iceberg files: schema by id, defaults, deletes, settings."""

import json
from datetime import date, datetime, time, timezone
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from support.iceberg_rewriting import (
    LAYOUT,
    Writer,
    delete_equal,
    delete_positions,
    delete_vectors,
    local,
    numbers,
    opened,
    replacement,
    rows_of,
)
from zonal.errors import ColumnError, TableError
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import FIELD_ID, EqualityDelete, Vector
from zonal.storage.arguments import azure_arguments, gcs_arguments, s3_arguments
from zonal.storage.options import Given

EVERYTHING = Schema(
    NestedField(1, "b", BooleanType()),
    NestedField(2, "i", IntegerType()),
    NestedField(3, "x", LongType(), required=True),
    NestedField(4, "f", FloatType()),
    NestedField(5, "y", DoubleType()),
    NestedField(6, "dec", DecimalType(20, 4)),
    NestedField(7, "day", DateType()),
    NestedField(8, "t", TimeType()),
    NestedField(9, "ts", TimestampType()),
    NestedField(10, "tz", TimestamptzType()),
    NestedField(11, "s", StringType()),
    NestedField(12, "u", UUIDType()),
    NestedField(13, "fix", FixedType(3)),
    NestedField(14, "bin", BinaryType()),
    NestedField(15, "list", ListType(20, StringType(), element_required=False)),
    NestedField(16, "map", MapType(21, StringType(), 22, LongType(), value_required=False)),
    NestedField(
        17,
        "geo",
        StructType(NestedField(23, "lat", DoubleType()), NestedField(24, "ids", ListType(25, UUIDType()))),
    ),
)


VALUES = {
    "b": True,
    "i": 1,
    "x": 2,
    "f": 0.5,
    "y": 1.5,
    "dec": Decimal("12.3456"),
    "day": date(2026, 1, 2),
    "t": time(1, 2, 3, 4),
    "ts": datetime(2026, 1, 2, 3),
    "tz": datetime(2026, 1, 2, 3, tzinfo=timezone.utc),
    "s": "text",
    "u": UUID(int=7).bytes,
    "fix": b"abc",
    "bin": b"\x00\xff",
    "list": ["a", None],
    "map": [("k", 1), ("l", None)],
    "geo": {"lat": 0.25, "ids": [UUID(int=8).bytes]},
}


def made(catalog, schema, **options):
    return catalog.create_table("db.t", schema, **options)


def ids(fields) -> dict[str, int]:
    """Return the field id at every level."""
    found = {}
    for field in fields:
        found[field.name] = int(field.metadata[FIELD_ID])
        kind = field.type
        if pa.types.is_map(kind):
            children = [kind.key_field, kind.item_field]
        else:
            children = [kind.field(n) for n in range(kind.num_fields)]
        found |= {f"{field.name}.{name}": number for name, number in ids(children).items()}
    return found


def scanned(table, files=None, **options):
    snapshot = table.snapshot()
    return table.scan(snapshot, np.arange(len(snapshot.files)) if files is None else np.array(files), **options)


def test_the_reading_schema_has_every_type_with_ids_at_every_level(catalog):
    made(catalog, EVERYTHING)
    scan = scanned(opened(catalog))
    schema = scan.reading.schema
    assert scan.reading.by_id
    assert ids(schema) == {
        **{field.name: field.field_id for field in EVERYTHING.fields},
        "list.element": 18,
        "map.key": 19,
        "map.value": 20,
        "geo.lat": 21,
        "geo.ids": 22,
        "geo.ids.element": 23,
    }
    assert schema.field("u").type == pa.binary(16)
    assert schema.field("fix").type == pa.binary(3)
    assert schema.field("t").type == pa.time64("us")
    assert schema.field("s").type == pa.string()
    assert schema.field("tz").type == pa.timestamp("us", "UTC")
    assert [field.name for field in schema if not field.nullable] == ["x"]
    assert scan.columns["geo.lat"] == "geo.lat"
    assert "list" in scan.columns
    assert "geo" not in scan.columns


def test_every_type_goes_through_a_rewrite(catalog, tmp_path):
    made(catalog, EVERYTHING)
    writer = Writer(catalog)
    nothing = dict.fromkeys(VALUES) | {"x": 3}
    schema = scanned(opened(catalog)).reading.schema
    writer.append(pa.Table.from_pylist([VALUES, nothing], schema=schema), tmp_path)
    writer.publish()
    table = opened(catalog)
    before = catalog.load_table("db.t").scan().to_arrow()
    assert before.num_rows == 2
    layout = Layout("zorder", ("x", "geo.lat"))
    rewrite = replacement(table, table.snapshot(), layout=layout)
    table.commit(rewrite)
    assert catalog.load_table("db.t").scan().to_arrow().equals(before)
    footer = pq.read_metadata(local(rewrite.added[0].path)).schema
    assert str(footer).count("(UUID)") == 2
    files = table.newest().snapshot().files
    for name in set(VALUES) - {"list", "map", "geo", "u"}:
        bounds = files.bounds[name]
        assert bounds.lower[0].is_valid, name
        assert bounds.upper[0].is_valid, name
    assert files.bounds["geo.lat"].upper.to_pylist() == [0.25]
    assert files.bounds["dec"].upper.to_pylist() == [VALUES["dec"]]
    task = next(iter(catalog.load_table("db.t").scan().plan_files()))
    assert task.file.lower_bounds[12] == VALUES["u"]
    assert set(task.file.value_counts) == set(range(1, 17)) - {15, 16} | {18, 19, 20, 21, 23}
    assert 18 not in task.file.lower_bounds


def test_chosen_columns_are_read_alone_and_unknown_ones_are_refused(catalog):
    made(catalog, EVERYTHING)
    table = opened(catalog)
    scan = scanned(table, columns=["geo", "x"])
    assert scan.reading.schema.names == ["geo", "x"]
    assert dict(scan.columns) == {"x": "x", "geo.lat": "geo.lat", "geo.ids": "geo.ids"}
    with pytest.raises(ColumnError, match="Did you mean 'geo'"):
        scanned(table, columns=["gee"])


def test_a_snapshot_of_another_table_is_refused(catalog):
    first = made(catalog, EVERYTHING)
    other = catalog.create_table("db.other", Schema(NestedField(1, "x", LongType())))
    other.append(pa.table({"x": [1]}))
    with pytest.raises(TableError, match="was not read from this"):
        opened(catalog).scan(opened(catalog, "db.other").snapshot(), np.arange(1))
    assert first.name() == ("db", "t")


# --- deletes -------------------------------------------------------------------------------------------------------

NUMBERS = Schema(NestedField(1, "x", LongType(), required=False), NestedField(2, "y", LongType(), required=False))


def source_of(scan, path):
    return next(source for source in scan.sources if source.path == path)


def test_vectors_and_position_deletes_reach_their_files_and_no_others(catalog, tmp_path):
    made(catalog, NUMBERS)
    for start in (0, 10):
        catalog.load_table("db.t").append(numbers(*range(start, start + 10)))
    first, second = opened(catalog).snapshot().files.paths.to_pylist()
    delete_positions(catalog, tmp_path, {first: [0, 1]}, paths=(first, first))
    delete_positions(catalog, tmp_path, {first: [2], second: [3]})
    catalog.load_table("db.t").append(numbers(*range(20, 30)))
    scan = scanned(opened(catalog))
    third = next(source for source in scan.sources if source.path not in (first, second))
    assert len(source_of(scan, first).position_deletes) == 2
    assert len(source_of(scan, second).position_deletes) == 1
    assert third.position_deletes == ()  # it is younger than the deletes of its partition
    assert sum(rows_of(source, scan.reading).num_rows for source in scan.sources) == 26
    Writer(catalog, format_version=3).publish()
    delete_vectors(catalog, tmp_path, {second: [3, 4], first: [0, 1, 2, 9]})
    scan = scanned(opened(catalog))
    vector = source_of(scan, first).vector
    assert isinstance(vector, Vector)
    assert (vector.rows, source_of(scan, second).vector.location) == (4, vector.location)
    assert vector.offset > source_of(scan, second).vector.offset == 4
    assert source_of(scan, first).position_deletes == ()  # the vector holds them
    assert sum(rows_of(source, scan.reading).num_rows for source in scan.sources) == 24


def test_equality_deletes_apply_to_older_files_of_their_partition_or_of_all(catalog, tmp_path):
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "x"))
    current = made(catalog, NUMBERS, partition_spec=spec)
    current.append(numbers(1, 2))
    delete_equal(catalog, tmp_path, pa.table({"y": pa.array([10], pa.int64())}), [2], partition=Record(2))
    writer = Writer(catalog)
    writer.append(numbers(1, 2), tmp_path)
    writer.publish()
    with catalog.load_table("db.t").update_spec() as update:
        update.remove_field("x")
    delete_equal(catalog, tmp_path, pa.table({"y": pa.array([20], pa.int64())}), [2], spec_id=1)
    scan = scanned(opened(catalog))
    found = sorted((s.row_version or 0, len(s.equality_deletes)) for s in scan.sources)
    assert [count for _, count in found] == [1, 1, 1, 2]
    deletes = {delete for source in scan.sources for delete in source.equality_deletes}
    assert {delete.field_ids for delete in deletes} == {(2,)}
    assert all(isinstance(delete, EqualityDelete) for delete in deletes)
    assert sorted(x for s in scan.sources for x in rows_of(s, scan.reading)["x"].to_pylist()) == [1, 1]


def test_equality_deletes_by_a_dropped_column_are_refused(catalog, tmp_path):
    made(catalog, NUMBERS).append(numbers(1, 2))
    delete_equal(catalog, tmp_path, pa.table({"y": pa.array([10], pa.int64())}), [2])
    with catalog.load_table("db.t").update_schema() as update:
        update.delete_column("y")
    with pytest.raises(TableError, match=r"columns that the table has dropped \(field ids \[2\]\)"):
        scanned(opened(catalog))


def test_delete_files_that_are_no_parquet_are_refused(catalog):
    made(catalog, NUMBERS).append(numbers(1))
    writer = Writer(catalog)
    writer.add_manifest([writer.position_deletes("file:///d.avro", file_format="AVRO")])
    writer.publish()
    with pytest.raises(TableError, match=r"d\.avro' is AVRO; zonal reads Parquet only"):
        scanned(opened(catalog))


# --- evolution -----------------------------------------------------------------------------------------------------


def test_renamed_added_dropped_and_widened_columns_are_read_by_id(catalog):
    schema = Schema(
        NestedField(1, "a", IntegerType()), NestedField(2, "b", StringType()), NestedField(3, "c", DoubleType())
    )
    current = made(catalog, schema)
    current.append(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array(["x"], pa.large_string()), "c": [0.5]}))
    with current.update_schema() as update:
        update.update_column("a", LongType())
        update.rename_column("a", "x")
        update.delete_column("b")
        update.add_column("y", DateType())
    with current.update_schema() as update:
        update.add_column("b", LongType())
    table = opened(catalog)
    scan = scanned(table)
    assert ids(scan.reading.schema) == {"x": 1, "c": 3, "y": 4, "b": 5}
    before = current.scan().to_arrow()
    table.commit(replacement(table, table.snapshot()))
    assert catalog.load_table("db.t").scan().to_arrow().equals(before)


def test_defaults_are_typed(catalog):
    made(catalog, NUMBERS)
    writer = Writer(catalog, format_version=3)
    defaults = {
        "string": "abc",
        "date": "2026-01-02",
        "decimal(9, 2)": "14.20",
        "timestamptz": "2026-01-02T03:04:05.000006+00:00",
        "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "fixed[2]": "00ff",
        "boolean": True,
        "double": 1.5,
    }
    fields = writer.metadata["schemas"][0]["fields"]
    for number, (kind, value) in enumerate(defaults.items(), 3):
        default = {"initial-default": value, "write-default": value}
        fields.append({"id": number, "name": f"c{number}", "required": False, "type": kind, **default})
    writer.publish()
    scan = scanned(opened(catalog))
    found = {number: scalar.as_py() for number, scalar in scan.reading.defaults.items()}
    assert found == {
        3: "abc",
        4: date(2026, 1, 2),
        5: Decimal("14.20"),
        6: datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc),
        7: UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes,
        8: b"\x00\xff",
        9: True,
        10: 1.5,
    }
    for field in scan.reading.schema:
        number = int(field.metadata[FIELD_ID])
        assert number not in found or scan.reading.defaults[number].type == field.type


def test_files_of_migrated_tables_are_read_by_mapped_names_and_partition_values(catalog, tmp_path):
    mapping = json.dumps([{"field-id": 1, "names": ["x", "ex"]}, {"field-id": 2, "names": ["y"]}])
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "y"))
    made(catalog, NUMBERS, partition_spec=spec, properties={"schema.name-mapping.default": mapping})
    path = tmp_path / "old.parquet"
    pq.write_table(pa.table({"ex": pa.array([1, 2], pa.int64())}), path)
    writer = Writer(catalog)
    size = path.stat().st_size
    file = writer.data_file(f"file://{path}", partition=Record(7), record_count=2, file_size_in_bytes=size)
    writer.add_manifest([file])
    writer.publish()
    table = opened(catalog)
    scan = scanned(table)
    assert scan.reading.aliases == {1: ("x", "ex"), 2: ("y",)}
    assert scan.sources[0].constants == {"y": pa.scalar(7, pa.int64())}
    table.commit(replacement(table, table.snapshot()))
    assert catalog.load_table("db.t").scan().to_arrow().to_pydict() == {"x": [1, 2], "y": [7, 7]}


def test_partition_values_are_left_to_files_that_have_them(catalog):
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "y"))
    made(catalog, NUMBERS, partition_spec=spec).append(numbers(1, 2))
    assert all(source.constants == {} for source in scanned(opened(catalog)).sources)


# --- how files are written -----------------------------------------------------------------------------------------


def test_settings_of_the_table_are_kept(catalog, tmp_path):
    properties = {
        "write.data.path": f"file://{tmp_path}/elsewhere",
        "write.parquet.compression-codec": "gzip",
        "write.parquet.compression-level": "9",
        "write.parquet.bloom-filter-enabled.column.y": "true",
        "write.parquet.bloom-filter-enabled.column.x": "false",
        "write.parquet.bloom-filter-enabled.column.gone": "true",
    }
    made(catalog, NUMBERS, properties=properties)
    table = opened(catalog)
    layout = Layout("zorder", ("x", "y"), bloom_columns=("x",))
    writing = table.writing(table.snapshot(), layout=layout, run="run1")
    assert writing.folder == f"file://{tmp_path}/elsewhere/zonal-{layout.id}-run1"
    assert (writing.compression, writing.compression_level) == ("gzip", 9)
    for asked, level in (("gzip", 9), ("brotli", None)):
        other = table.writing(table.snapshot(), layout=layout, run="run1", compression=asked)
        assert (other.compression, other.compression_level) == (asked, level), "the level is that of its own codec"
    assert writing.bloom_columns == ("x", "y")
    assert ids(writing.schema) == {"x": 1, "y": 2}
    with catalog.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"write.parquet.compression-codec": "lzo"})
    table = table.newest()
    with pytest.raises(TableError, match="compression-codec='lzo'"):
        table.writing(table.snapshot(), layout=layout, run="run1")


def test_a_table_of_version_3_reads_and_writes_lineage_and_refuses_its_names(catalog):
    made(catalog, NUMBERS)
    writer = Writer(catalog, format_version=3)
    writer.publish()
    table = opened(catalog)
    snapshot = table.snapshot()
    names = ["x", "y", "_row_id", "_last_updated_sequence_number"]
    assert table.writing(snapshot, layout=LAYOUT, run="r").schema.names == names
    scan = scanned(table)
    assert ids(scan.reading.schema) == {
        **dict(zip(names, [1, 2], strict=False)),
        names[2]: 2147483540,
        names[3]: 2147483539,
    }
    assert (scan.reading.row_id, scan.reading.row_version) == tuple(names[2:])
    assert scanned(table, columns=["x"]).reading.row_id is None
    writer = Writer(catalog)
    writer.metadata["schemas"][0]["fields"][0]["name"] = "_row_id"
    writer.publish()
    assert any("'_row_id'" in blocker for blocker in opened(catalog).snapshot().blockers)


def test_credentials_for_workers_are_those_of_the_files_only(catalog):
    properties = {
        "s3.endpoint": "http://minio:9000",
        "s3.access-key-id": "me",
        "client.region": "eu",
        "s3.anonymous": "no",
    }
    assert s3_arguments(Given((properties,))) == {
        "access_key": "me",
        "region": "eu",
        "endpoint_override": "minio:9000",
        "scheme": "http",
    }
    token = gcs_arguments(Given(({"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1000"},)))
    assert sorted(token) == ["access_token", "credential_token_expiration"]
    keys = Given(({"adls.account-key": "k", "adls.sas-token.acc": "s"},))
    assert azure_arguments(keys, "c@acc.dfs.core.windows.net") == {
        "account_name": "acc",
        "account_key": "k",
        "sas_token": "s",
    }
    made(catalog, NUMBERS)
    table = opened(catalog)
    table.table.io.properties |= {"s3.region": "eu", "uri": "postgresql://me:hunter2@host/x", "token": "hunter2"}
    assert table.writing(table.snapshot(), layout=LAYOUT, run="r").storage._options == {"s3.region": "eu"}
    table.table.io.properties["s3.remote-signing-enabled"] = "true"
    with pytest.raises(TableError, match="signs each request"):
        table.writing(table.snapshot(), layout=LAYOUT, run="r")
