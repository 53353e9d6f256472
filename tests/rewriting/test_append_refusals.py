"""What can't be appended is refused before any work, and the table stays as it was."""

import json
import re
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType

from support.appends import append_to
from support.cluster_tables import NEWEST, Delta, Iceberg, Parquet, home, never, telemetry
from zonal.errors import ColumnError, LayoutError, TableError, ZonalError

WRONG = pa.table(
    {
        "id": pa.array(["1"]),
        "x": pa.array([1.5]),
        "S": pa.array(["a"]),
        "p": pa.array([3], pa.int64()),
        "y": pa.array([Decimal("1.5")]),
        "more": pa.array([1]),
    }
)


@pytest.fixture(params=NEWEST)
def table(request, tmp_path):
    return home(request.param, tmp_path).make([telemetry(30)])


def refused(table, rows, error, told, **asked):
    listing = table.listing()
    with pytest.raises(error) as raised:
        append_to(table, rows, spark=never, **asked)
    text = " ".join(str(raised.value).split())
    for part in [told] if isinstance(told, str) else told:
        assert re.search(part, text), text
    assert table.listing() == listing


def test_every_difference_is_told_at_once(table):
    told = [
        "no column 'S'. Did you mean 's'",
        "no column 'more'",
        "'id' is string, which can't become int64",
        "'x' is double, which can't become int64",
        "'p' is int64, which can't become string",
        "'y' is decimal",
    ]
    refused(table, WRONG, ColumnError, told, by="id")


def test_a_name_that_is_there_twice_is_refused(table):
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    refused(table, rows, ColumnError, "'id' is there 2 times", by="id")


def test_types_are_widened_where_no_value_changes(table):
    rows = pa.table(
        {
            "id": pa.array([500], pa.int16()),
            "x": pa.array([7], pa.uint32()),
            "y": pa.array([1.5], pa.float32()),
            "s": pa.array(["a"]).dictionary_encode(),
            "p": pa.array(["b"], pa.large_string()),
        }
    )
    append_to(table, rows, by="id")
    found = [row for row in table.rows().to_pylist() if row["id"] == 500]
    assert found == [{"id": 500, "x": 7, "y": 1.5, "s": "a", "p": "b"}]


def test_columns_that_may_be_null_may_be_missing_and_come_in_any_order(table):
    append_to(table, pa.table({"s": ["a"], "id": [500]}), by="id")
    found = [row for row in table.rows().to_pylist() if row["id"] == 500]
    assert found == [{"id": 500, "x": None, "y": None, "s": "a", "p": None}]


def test_required_columns_must_be_there_and_have_no_nulls(tmp_path):
    table = Iceberg(tmp_path)
    inner = StructType(NestedField(4, "lat", LongType(), required=True), NestedField(5, "lon", LongType()))
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "s", StringType()),
        NestedField(3, "geo", inner),
    )
    table.catalog.create_table("db.t", schema)
    refused(table, pa.table({"s": ["a"]}), ColumnError, "'id' .*is missing, and the table requires it", by="id")
    nested = pa.table({"id": [1], "geo": [{"lon": 1, "alt": 2}]})
    refused(table, nested, ColumnError, ["no field 'geo.alt'", r"'geo.lat' \(int64\) is missing"], by="id")
    for rows, column in (
        (pa.table({"id": pa.array([1, None], pa.int64())}), "id"),
        (
            pa.table(
                {"id": [1], "geo": [{"lat": None, "lon": 1}]},
                schema=pa.schema({"id": pa.int64(), "geo": pa.struct({"lat": pa.int64(), "lon": pa.int64()})}),
            ),
            "geo.lat",
        ),
    ):
        with pytest.raises(TableError, match=f"required column '{column}' has nulls"):
            append_to(table, rows, by="id")
        assert not table.run_folders(), "nothing is left"
    append_to(table, pa.table({"id": [1], "geo": [{"lat": 5, "lon": None}]}), by="id")
    assert table.rows().to_pylist() == [{"id": 1, "s": None, "geo": {"lat": 5, "lon": None}}]


def test_values_that_a_type_cant_hold_exactly_are_refused(tmp_path):
    table = Delta(tmp_path).make([pa.table({"t": pa.array([1], pa.timestamp("us"))})])
    rows = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(TableError, match=r"'t' is timestamp.* would lose data"):
        append_to(table, rows, by="t")
    assert table.version() == 0
    assert not table.run_folders()


def test_a_layout_is_asked_for_and_another_one_refused(table):
    refused(table, telemetry(3), LayoutError, "records no layout")
    append_to(table, telemetry(3, first=100), by=["x", "y"])
    append_to(table, telemetry(3, first=200), by=["x", "y"])
    refused(table, telemetry(3), LayoutError, r"records the layout zorder\(x, y\)", by="y")


def test_plain_parquet_and_what_isnt_rows_are_refused(tmp_path, table):
    folder = Parquet(tmp_path / "plain").make([telemetry(3)])
    with pytest.raises(TableError, match="no atomic commit"):
        append_to(folder, telemetry(3), by="x")
    with pytest.raises(TableError, match="There is nothing at"):
        append_to(Parquet(tmp_path / "plane"), telemetry(3), by="x")
    refused(table, 7, ZonalError, "Rows can't be taken from '7'", by="x")
    refused(table, telemetry(3), ZonalError, "not a name and a number", by="x", transaction="stream")
    refused(table, telemetry(3), ZonalError, "not a whole number", by="x", transaction=("stream", -1))


@pytest.mark.parametrize(
    ("configuration", "told"),
    [({"delta.constraints.even": "id % 2 = 0"}, "CHECK constraint 'even'"), ({}, "")],
)
def test_check_constraints_are_refused_by_name(configuration, told, tmp_path):
    table = Delta(tmp_path).make([telemetry(3)])
    _change(table, lambda meta: meta["configuration"].update(configuration))
    if told:
        refused(table, telemetry(3), TableError, told, by="x")
    else:
        append_to(table, telemetry(3, first=10), by="x")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("delta.generationExpression", "x + 1", "the generated column 'id'"),
        ("delta.identity.start", 1, "the identity column 'id'"),
        ("delta.invariants", "{}", "the invariant of column 'id'"),
        ("__CHAR_VARCHAR_TYPE_STRING", "varchar(3)", "the length of the texts in column 'id'"),
    ],
)
def test_columns_that_need_sql_are_refused_by_name(key, value, told, tmp_path):
    table = Delta(tmp_path).make([telemetry(3)])

    def change(meta):
        schema = json.loads(meta["schemaString"])
        schema["fields"][0]["metadata"][key] = value
        meta["schemaString"] = json.dumps(schema)

    _change(table, change)
    refused(table, telemetry(3), TableError, told, by="x")


def test_a_default_in_sql_must_be_given(tmp_path):
    table = Delta(tmp_path).make([telemetry(3)])

    def change(meta):
        schema = json.loads(meta["schemaString"])
        schema["fields"][1]["metadata"]["CURRENT_DEFAULT"] = "now()"
        meta["schemaString"] = json.dumps(schema)

    _change(table, change)
    refused(table, telemetry(3).drop_columns("x"), ColumnError, r"'x' is missing: its default, 'now\(\)'", by="id")
    assert append_to(table, telemetry(3, first=10), by="id").rows == 3


def test_an_empty_partition_text_is_refused(tmp_path):
    table = Delta(tmp_path).make([pa.table({"id": [1], "p": ["a"]})], ["p"])
    with pytest.raises(TableError, match="can't tell from null"):
        append_to(table, pa.table({"id": [2], "p": [""]}), by="id")
    assert table.version() == 0
    assert not list(table.root.rglob("zonal-*"))


def test_unknown_writer_features_are_refused_by_name(tmp_path):
    table = Delta(tmp_path).make([telemetry(3)])
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["icebergCompatV2"]}
    (table.root / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"protocol": protocol}))
    refused(table, telemetry(3), TableError, "icebergCompatV2", by="x")


def test_dates_partition_delta_tables(tmp_path):
    rows = pa.table({"id": [1, 2], "day": [date(2026, 1, 1), None]})
    write_deltalake(tmp_path / "t", rows.slice(0, 0), partition_by=["day"])
    table = Delta(tmp_path)
    append_to(table, rows, by="id")
    assert sorted(table.rows().to_pylist(), key=lambda row: row["id"]) == rows.to_pylist()


def _change(table, change):
    """Commit the table's metadata anew, as another engine leaves it."""
    log = table.root / "_delta_log"
    line = next(line for line in (log / f"{0:020d}.json").read_text().splitlines() if '"metaData"' in line)
    meta = json.loads(line)
    meta["metaData"].setdefault("configuration", {})
    change(meta["metaData"])
    (log / f"{1:020d}.json").write_text(json.dumps(meta))
