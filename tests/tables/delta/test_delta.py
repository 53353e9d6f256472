import io
import json
import os
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from threading import Lock

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.delta_tables import (
    LogWriter,
    add,
    features,
    field,
    metadata,
    parsed_stats_schema,
    protocol,
    remove,
    stats,
    struct,
    synthetic_table,
    vector,
)
from zonal.errors import TableError
from zonal.layouts.layout import Layout
from zonal.snapshot import UNKNOWN
from zonal.storage import Storage
from zonal.storage.arguments import azure_arguments, s3_arguments
from zonal.storage.options import Given
from zonal.tables.delta import log as deltalog
from zonal.tables.delta import stats as deltastats
from zonal.tables.delta.listing import LogFolder
from zonal.tables.delta.log import replay
from zonal.tables.delta.table import DeltaTable, is_delta
from zonal.worker.read.data_file import open_parquet

UTC = timezone.utc


def read(where, **options):
    return DeltaTable(str(where), **options).snapshot()


def names(snapshot):
    return sorted(path.rpartition("/")[2] for path in snapshot.files.paths.to_pylist())


def of(snapshot, column, file=0):
    """Lower bound, upper bound and nulls of one column in one file."""
    bounds = snapshot.files.bounds[column]
    return bounds.lower[file].as_py(), bounds.upper[file].as_py(), bounds.nulls[file]


def one_file(tmp_path, kind, lower, upper, *, records=2, nulls=0, metadata_=None, **more):
    """A table of one column `c` and one file with these statistics."""
    text = stats(records, {"c": lower}, {"c": upper}, {"c": nulls}, **more)
    head = (features("timestampNtz"), metadata(field("c", kind, metadata=metadata_)))
    return read(LogWriter(tmp_path).commit(*head, add("f", stats=text)))


@pytest.fixture
def log(tmp_path):
    return LogWriter(tmp_path / "table")


HEAD = (protocol(), metadata(field("x", "long"), field("s", "string")))


# --- tables that deltalake writes -------------------------------------------------------------------------------------


def judge(where, **options):
    """Compare files, rows, sizes and whole-number bounds with deltalake's own reading of the log."""
    snapshot = read(where, **options)
    theirs = pa.table(deltalake.DeltaTable(str(where), **options).get_add_actions(flatten=True))
    mine = {path: row for row, path in enumerate(snapshot.files.paths.to_pylist())}
    full = [f"{where}/{path}".replace("%25", "%") for path in theirs["path"].to_pylist()]
    assert sorted(mine) == sorted(full), "the same files are live"
    order = [mine[path] for path in full]
    assert snapshot.files.rows[order].tolist() == theirs["num_records"].to_pylist(), "the same numbers of rows"
    assert snapshot.files.sizes[order].tolist() == theirs["size_bytes"].to_pylist(), "the same sizes"
    for name, bounds in snapshot.files.bounds.items():
        if f"min.{name}" in theirs.column_names and pa.types.is_integer(theirs[f"min.{name}"].type):
            assert bounds.lower.take(order).to_pylist() == theirs[f"min.{name}"].to_pylist(), name
            assert bounds.upper.take(order).to_pylist() == theirs[f"max.{name}"].to_pylist(), name
        if f"null_count.{name}" in theirs.column_names:
            counts = [UNKNOWN if n is None else n for n in theirs[f"null_count.{name}"].to_pylist()]
            assert bounds.nulls[order].tolist() == counts, name
    return snapshot


def test_a_life_of_appends_deletes_and_compactions_is_read_as_deltalake_reads_it(tmp_path):
    rows = pa.table({"x": [1, 2, None], "s": ["a", "b", None], "g": pa.array([{"y": 1}, None, {"y": 3}])})
    for _ in range(3):
        deltalake.write_deltalake(tmp_path, rows, mode="append")
    snapshot = judge(tmp_path)
    assert snapshot.version == 2
    assert sorted(snapshot.files.added_by.tolist()) == [0, 1, 2]
    assert snapshot.time == snapshot.commits[2].time
    assert snapshot.commits[0].operation == "WRITE"

    table = deltalake.DeltaTable(tmp_path)
    table.delete("x = 2")
    judge(tmp_path)
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    table.update_incremental()
    table.optimize.compact()
    judge(tmp_path)
    table.create_checkpoint()
    snapshot = judge(tmp_path)
    assert snapshot.files.added_by.tolist() == [5], "the commits before the checkpoint are still there"
    deltalake.write_deltalake(tmp_path, rows, mode="append")
    assert judge(tmp_path).files.added_by.tolist() == [5, 6]
    wider = rows.append_column("z", pa.array([1, 2, 3]))
    deltalake.write_deltalake(tmp_path, wider, mode="append", schema_mode="merge")
    snapshot = judge(tmp_path)
    assert of(snapshot, "z", 0) == (None, None, UNKNOWN), "the column is younger than the file"
    deltalake.write_deltalake(tmp_path, wider, mode="overwrite")
    judge(tmp_path)
    for version in range(9):
        judge(tmp_path, version=version)


def test_a_checkpoint_alone_is_a_table(tmp_path):
    deltalake.write_deltalake(tmp_path, pa.table({"x": [1, 2]}))
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    snapshot = read(tmp_path)
    assert of(snapshot, "x") == (1, 2, 0)
    assert snapshot.files.added_by.tolist() == [UNKNOWN]
    assert snapshot.time is not None
    assert snapshot.commits == {}


PARTITIONED = {
    "long": (pa.array([2**62 + 1, -5, None]), [2**62 + 1, -5, None]),
    "string": (pa.array(["a b/ü%", "x=y", None]), ["a b/ü%".encode(), b"x=y", None]),
    "date": (pa.array([date(1, 1, 1), date(2026, 1, 1), None]), [date(1, 1, 1), date(2026, 1, 1), None]),
    "boolean": (pa.array([True, False, None]), [True, False, None]),
    "binary": (pa.array([b"\x00\xff", b"a", None]), [b"\x00\xff", b"a", None]),
    "float": (pa.array([0.1, -2.5, None], pa.float32()), [float(np.float32(0.1)), -2.5, None]),
    "ntz": (
        pa.array([datetime(2020, 1, 1, 0, 0, 0, 123456), datetime(1969, 1, 1), None], pa.timestamp("us")),
        [datetime(2020, 1, 1, 0, 0, 0, 123456), datetime(1969, 1, 1), None],
    ),
}


@pytest.mark.parametrize("kind", PARTITIONED)
def test_partition_values_of_deltalake_are_both_bounds(tmp_path, kind):
    column, expected = PARTITIONED[kind]
    deltalake.write_deltalake(tmp_path, pa.table({"id": [0, 1, 2], "p": column}), partition_by=["p"])
    for checkpoint in (False, True):
        if checkpoint:
            deltalake.DeltaTable(tmp_path).create_checkpoint()
        snapshot = read(tmp_path)
        assert snapshot.partitioning == ("p",)
        assert "p" not in snapshot.files.bounds
        ids, bounds = snapshot.files.bounds["id"].lower.to_pylist(), snapshot.files.partition_bounds["p"]
        assert bounds.lower.to_pylist() == [expected[i] for i in ids]
        assert bounds.upper.to_pylist() == [expected[i] for i in ids]
        assert bounds.nulls.tolist() == [int(expected[i] is None) for i in ids]
        for path in snapshot.files.paths.to_pylist():
            with DeltaTable(str(tmp_path)).open_file(path) as source:
                assert pq.ParquetFile(source).metadata.num_rows == 1


def test_partitions_are_numbered_by_their_labels(log):
    def file(name, region, day):
        return add(name, values={"region": region, "day": day}, stats=stats(5))

    fields = (field("region", "string"), field("day", "date"), field("x", "long"))
    files = [file("a", "us", "2026-01-02"), file("b", "eu", "2026-01-01"), file("c", None, ""), file("d", "a/b", None)]
    snapshot = read(log.commit(protocol(), metadata(*fields, partitioning=["region", "day"]), *files))
    assert snapshot.files.partitions == (
        "region=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__",
        "region=a%2Fb/day=__HIVE_DEFAULT_PARTITION__",
        "region=eu/day=2026-01-01",
        "region=us/day=2026-01-02",
    )
    assert snapshot.files.partition.tolist() == [3, 2, 0, 1]
    assert snapshot.files.partition_bounds["day"].nulls.tolist() == [0, 0, 5, 5]
    assert snapshot.files.partition_bounds["day"].lower.to_pylist()[0] == date(2026, 1, 2)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("timestamp", "1970-01-01T00:00:00.123456Z", datetime(1970, 1, 1, 0, 0, 0, 123456, UTC)),
        ("timestamp_ntz", "1970-01-01 00:00:00", datetime(1970, 1, 1)),
        ("decimal(9,2)", "-1.50", Decimal("-1.50")),
        ("double", "1E300", 1e300),
        ("integer", "7", 7),
        ("boolean", "true", True),
        ("binary", "\u0001a", b"\x01a"),
        ("binary", "ü", None),
        ("date", "2026-99-99", None),
        ("decimal(9,2)", "-1.-5000", None),
        ("double", "NaN", None),
    ],
)
def test_partition_values_are_read_in_every_form(log, kind, text, expected):
    head = (features("timestampNtz"), metadata(field("p", kind), partitioning=["p"]))
    bounds = read(log.commit(*head, add("f", values={"p": text}, stats=stats(3)))).files.partition_bounds["p"]
    assert (bounds.lower[0].as_py(), bounds.upper[0].as_py()) == (expected, expected)
    assert (bounds.nulls[0], bounds.nans[0]) == (0, 3 if text == "NaN" else 0)


def test_a_partition_time_without_its_zone_holds_for_every_zone(log):
    head = (protocol(), metadata(field("p", "timestamp"), partitioning=["p"]))
    text = "2026-06-01 00:00:00"
    bounds = read(log.commit(*head, add("f", values={"p": text}))).files.partition_bounds["p"]
    noon = datetime(2026, 6, 1, tzinfo=UTC)
    assert (bounds.lower[0].as_py(), bounds.upper[0].as_py()) == (
        noon - timedelta(hours=14),
        noon + timedelta(hours=12),
    )


def test_column_mapping_of_deltalake_is_told_by_logical_names(tmp_path):
    rows = pa.table({"x": [1, 2], "part": ["a", "a"]})
    mapped = {"delta.columnMapping.mode": "name"}
    deltalake.write_deltalake(tmp_path, rows, configuration=mapped, partition_by=["part"])
    snapshot = read(tmp_path)
    assert of(snapshot, "x") == (1, 2, 0)
    assert snapshot.files.partition_bounds["part"].lower.to_pylist() == [b"a"]
    assert snapshot.physical["x"].path.startswith("col-")
    assert snapshot.physical["x"].field_id is None


# --- soundness --------------------------------------------------------------------------------------------------------

MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
VALUES = {
    "byte": (pa.int8(), st.integers(-128, 127)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=45)),
    "alike": (pa.string(), st.text("ab\U0010ffff\x7f", min_size=30, max_size=40)),
    "bool": (pa.bool_(), st.booleans()),
    "binary": (pa.binary(), st.binary(max_size=5)),
    "date": (pa.date32(), st.dates()),
    "ts": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    "ntz": (pa.timestamp("us"), MOMENTS),
    "small": (pa.decimal128(9, 2), st.decimals(-9999999, 9999999, places=2)),
    "precise": (pa.decimal128(15, 14), st.decimals(-9, 9, places=14)),
    "big": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
}


def assert_within(values, bounds, file, name):
    """Every value of a column that is neither null nor NaN lies within the bounds of its file."""
    values = values.filter(pc.is_valid(values))
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if pa.types.is_string(values.type):
        values = values.cast(pa.large_binary())
    if pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        return
    lower, upper = bounds.lower[file].as_py(), bounds.upper[file].as_py()
    for value in values.to_pylist():
        assert lower is None or lower <= value, f"{name}: {value!r} is below {lower!r}"
        assert upper is None or value <= upper, f"{name}: {value!r} is above {upper!r}"


ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()}), min_size=1)


@settings(max_examples=20)
@given(st.lists(ROWS, min_size=1, max_size=3), st.booleans())
def test_every_value_lies_within_the_bounds(tmp_path_factory, contents, checkpoint):
    where = tmp_path_factory.mktemp("table")
    schema = pa.schema({name: kind for name, (kind, _) in VALUES.items()})
    for content in contents:
        rows = pa.Table.from_pylist(content, schema)
        nested = pa.StructArray.from_arrays([rows[name].combine_chunks() for name in VALUES], fields=list(schema))
        deltalake.write_deltalake(where, rows.append_column("nested", nested), mode="append")
    if checkpoint:
        deltalake.DeltaTable(where).create_checkpoint()
    table = DeltaTable(str(where))
    snapshot = table.snapshot()
    for file, path in enumerate(snapshot.files.paths.to_pylist()):
        with table.open_file(path) as source:
            rows = pq.read_table(source)
        for name in VALUES:
            for column, values in ((name, rows[name]), (f"nested.{name}", pc.struct_field(rows["nested"], name))):
                bounds = snapshot.files.bounds[column]
                assert_within(values.combine_chunks(), bounds, file, column)
                assert bounds.nulls[file] in (UNKNOWN, values.null_count), column
        for name in ("long", "date", "ts", "small"):
            known = rows[name].null_count < len(rows)
            assert snapshot.files.bounds[name].lower[file].is_valid == known, f"{name} has bounds"


@pytest.mark.parametrize(
    ("lower", "upper", "inside", "outside"),
    [
        ("short", "shorty", "shorty", "shortz"),
        ("a" * 32, "b" * 32, "b" * 32 + "\U0010ffff" * 9, "c"),
        ("a" * 32, "b" * 32 + "\U0010ffff", "b" * 32 + "\U0010ffff" * 9, "c"),
        ("a" * 32, "b" * 32 + "\x7f", "b" * 32 + "~~", "c"),
        ("é" * 16, "é" * 16, "é" * 16 + "zzz", "ê"),
    ],
)
def test_cut_strings_still_bound_every_string(tmp_path, lower, upper, inside, outside):
    low, high, _ = of(one_file(tmp_path, "string", lower, upper), "c")
    assert low <= lower.encode()
    assert upper.encode() <= high
    assert inside.encode() <= high, "a value with the prefix of a cut maximum"
    assert outside.encode() > high, "the bound is still of use"


@pytest.mark.parametrize(
    ("kind", "upper", "expected"),
    [
        ("timestamp", "2026-01-01T00:00:00.123Z", datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        ("timestamp", "2026-01-01T00:00:00.123+00:00", datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        ("timestamp", "2026-01-01T01:00:00.123+01:00", datetime(2026, 1, 1, 0, 0, 0, 123999, UTC)),
        ("timestamp", "2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 0, 0, 999, UTC)),
        ("timestamp", "2026-01-01T00:00:00.123456Z", datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)),
        ("timestamp", "2026-01-01T00:00:00.123", datetime(2026, 1, 1, 12, 0, 0, 123999, UTC)),
        ("timestamp_ntz", "2026-01-01T00:00:00.123", datetime(2026, 1, 1, 0, 0, 0, 123999)),
        ("timestamp_ntz", "2026-01-01 00:00:00.123", datetime(2026, 1, 1, 0, 0, 0, 123999)),
        ("timestamp_ntz", "2026-01-01", datetime(2026, 1, 1, 0, 0, 0, 999)),
        ("timestamp_ntz", "+12026-01-01T00:00:00", None),
        ("date", "2026-01-01", date(2026, 1, 1)),
        ("date", "2026-02-30", None),
        ("double", "NaN", None),
        ("double", "Infinity", float("inf")),
        ("double", 0.30000000000000004, 0.30000000000000004),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", 2**63, None),
        ("byte", 300, None),
        ("long", "7", None),
        ("boolean", True, True),
        ("binary", "abc", None),
        ("decimal(9,2)", 1.1, Decimal("1.10")),
        ("decimal(9,2)", 1.101, Decimal("1.11")),
        ("decimal(9,2)", 99999999999, None),
        ("string", "\ud83d", None),
        ("string", "", b""),
    ],
)
def test_upper_bounds_are_at_or_above_what_the_writer_saw(tmp_path, kind, upper, expected):
    _, high, _ = of(one_file(tmp_path, kind, None, upper), "c")
    assert high == expected


def test_decimals_beyond_a_double_are_widened(tmp_path):
    head = (protocol(), metadata(field("c", "decimal(30,4)")))
    text = '{"numRecords":1,"minValues":{"c":1.234567890123457e+19},"maxValues":{"c":1.234567890123457e+19}}'
    low, high, _ = of(read(LogWriter(tmp_path).commit(*head, add("f", stats=text))), "c")
    assert low < Decimal("12345678901234567890.1234") < high
    assert high - low < 10**6


def test_floats_and_doubles_that_were_floats_are_widened(tmp_path):
    low, high, _ = of(one_file(tmp_path / "float", "float", 0.1, 0.1), "c")
    assert low < float(np.float32(0.1)) < high
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    low, high, _ = of(one_file(tmp_path / "double", "double", 0.1, 0.1, metadata_=changes), "c")
    assert low <= 0.1 < float(np.float32(0.1)) <= high, "an old file holds the float next to 0.1"


@pytest.mark.parametrize(
    ("tight", "nulls", "expected"), [(False, 3, UNKNOWN), (False, 0, 0), (False, 10, 10), (True, 3, 3), (True, 11, -1)]
)
def test_wide_statistics_count_nulls_only_at_the_ends(tmp_path, tight, nulls, expected):
    snapshot = one_file(tmp_path, "long", 1, 9, records=10, nulls=nulls, tightBounds=tight)
    assert of(snapshot, "c") == (1, 9, expected)


def test_statistics_that_contradict_themselves_prove_nothing(tmp_path):
    assert of(one_file(tmp_path, "long", 9, 1), "c") == (None, None, 0)


@pytest.mark.parametrize("text", ["", "nonsense", "{", "[]", "{}\n{}", '{"numRecords": "x"}', '{"minValues": 3}'])
def test_broken_statistics_of_one_file_leave_the_others_alone(log, text):
    good = stats(5, {"x": 1}, {"x": 2}, {"x": 0})
    files = [add("good", stats=good), add("bad", stats=text), add("none"), add("empty", stats="")]
    snapshot = read(log.commit(*HEAD, *files))
    assert snapshot.files.rows.tolist() == [5, UNKNOWN, UNKNOWN, UNKNOWN]
    assert snapshot.files.bounds["x"].lower.to_pylist() == [1, None, None, None]
    assert snapshot.files.bounds["x"].nulls.tolist() == [0, UNKNOWN, UNKNOWN, UNKNOWN]


def test_both_readers_of_statistics_agree(tmp_path, monkeypatch):
    log = synthetic_table(tmp_path, 20, checkpoint=False, commits=2)
    fast = read(log)
    assert all(fast.files.bounds[name].lower.null_count == 0 for name in fast.files.bounds)

    def refuse(*_):
        raise pa.ArrowInvalid("not this time")

    monkeypatch.setattr(deltastats, "_read_lines", refuse)
    slow = read(log)
    for name in fast.files.bounds:
        one, other = fast.files.bounds[name], slow.files.bounds[name]
        assert one.lower.equals(other.lower), name
        assert one.upper.equals(other.upper), name
        assert (one.nulls == other.nulls).all(), name


def test_arrow_reads_the_statistics_of_a_usual_table(tmp_path, monkeypatch):
    log = synthetic_table(tmp_path, 3)
    monkeypatch.setattr(deltastats, "_object", lambda *_: pytest.fail("one object at a time is slow"))
    snapshot = read(log)
    assert [len(snapshot.files.bounds[name].lower) for name in snapshot.files.bounds] == [3] * 6


# --- the log ----------------------------------------------------------------------------------------------------------


def test_deletion_vectors_are_part_of_a_files_name(log):
    text = stats(10, {"x": 1}, {"x": 9}, {"x": 3}, tightBounds=False)
    log.commit(features("deletionVectors"), HEAD[1], add("a", stats=stats(10)), add("b", stats=stats(10)))
    log.commit(remove("a"), add("a", stats=text, deletionVector=vector("v1", cardinality=2)))
    snapshot = read(log)
    assert names(snapshot) == ["a", "b"]
    assert dict(zip(names(snapshot), snapshot.files.deleted[::-1], strict=True)) == {"a": 2, "b": 0}
    assert snapshot.files.delete_files.tolist() == [0, 1]
    log.commit(remove("a", deletionVector=vector("v1")), add("a", stats=text, deletionVector=vector("v1", offset=9)))
    log.commit(remove("a", deletionVector=vector("v1")))
    assert names(read(log)) == ["a", "b"], "the vector at the old offset was gone already"
    log.commit(remove("a", deletionVector=vector("v1", offset=9)))
    assert names(read(log)) == ["b"]
    assert names(read(log, version=0)) == ["a", "b"]


def test_commits_change_what_a_checkpoint_holds(log):
    one = vector("v1")
    head = (features("deletionVectors"), HEAD[1])
    log.commit(*head).checkpoint(*head, add("a"), add("b", deletionVector=one), add("c"), add("d"), remove("old"))
    log.commit(remove("a"), remove("b"), add("d", size=7, stats=stats(1)), add("e"))
    snapshot = read(log)
    assert names(snapshot) == ["b", "c", "d", "e"], "b without its vector was not the file that is there"
    assert snapshot.files.added_by.tolist() == [UNKNOWN, UNKNOWN, 1, 1]
    assert snapshot.files.sizes.tolist() == [1000, 1000, 7, 1000]


def test_multi_part_checkpoints_count_only_when_complete(log):
    log.commit(*HEAD, add("a"), add("b"))
    log.checkpoint(*HEAD, add("a"), middle=f".{1:010d}.{2:010d}")
    log.forget(0)
    with pytest.raises(TableError, match="has no commit and no checkpoint"):
        read(log)
    log.checkpoint(add("b"), middle=f".{2:010d}.{2:010d}")
    assert names(read(log)) == ["a", "b"]


UUID = ".80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(("kind", "middle"), [("parquet", ""), ("parquet", UUID), ("json", UUID)])
def test_v2_checkpoints_have_sidecars(log, kind, middle):
    head = (features("v2Checkpoint"), HEAD[1])
    log.commit(*head, add("a"), add("b"), add("c"))
    first = log.sidecar("one.parquet", add("a", stats=stats(1, {"x": 1}, {"x": 1})))
    second = log.sidecar("two.parquet", add("b", tags={"zonal.layouts.layout": "abc"}))
    log.checkpoint({"checkpointMetadata": {"version": 0}}, *head, first, second, middle=middle, kind=kind).forget(0)
    log.commit(remove("a"), add("d"))
    snapshot = read(log)
    assert names(snapshot) == ["b", "d"]
    assert snapshot.files.layout_ids.to_pylist() == ["abc", None]
    assert names(read(log, version=0)) == ["a", "b"]
    assert of(read(log, version=0), "x")[:2] == (1, 1)


def test_a_missing_sidecar_is_named(log):
    gone = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 0}}
    log.commit(*HEAD).checkpoint(*HEAD, gone).forget(0)
    with pytest.raises(TableError, match=r"gone\.parquet"):
        read(log)


def second(log):
    return log.log / f"{2:020d}.checkpoint.parquet"


def torn(path):
    path.write_bytes(path.read_bytes()[:-20])


GONE = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 0}}
TEARS = {
    "torn": lambda log: torn(second(log)),
    "empty": lambda log: second(log).write_bytes(b""),
    "zeros": lambda log: second(log).write_bytes(bytes(second(log).stat().st_size)),
    "without a sidecar": lambda log: log.checkpoint(*HEAD, GONE),
    "with a torn sidecar": lambda log: (
        log.checkpoint(*HEAD, log.sidecar("s.parquet", add("a"))),
        torn(log.log / "_sidecars" / "s.parquet"),
    ),
}


@pytest.mark.parametrize("older", ["a checkpoint", "commits alone"])
@pytest.mark.parametrize("tear", TEARS)
def test_a_checkpoint_that_cannot_be_read_is_not_needed_where_older_files_tell_the_same(log, tear, older):
    tracked = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}
    log.commit(*HEAD, add("a", stats=stats(3, {"x": 1}, {"x": 5})), add("b"))
    if older == "a checkpoint":
        log.checkpoint(*HEAD, add("a", stats=stats(3, {"x": 1}, {"x": 5})), add("b"))
    log.commit(remove("b"), add("c"), tracked).commit(metadata(field("x", "long"), configuration={"k": "v"}))
    expected = read(log)
    log.checkpoint(features(), HEAD[1], add("wrong"))
    TEARS[tear](log)
    found = read(log)
    assert names(found) == names(expected) == ["a", "c"]
    assert of(found, "x") == of(expected, "x")
    assert found.files.added_by.tolist() == expected.files.added_by.tolist() == [0, 1]
    assert found.properties == expected.properties == {"k": "v"}
    assert found.commits == expected.commits
    assert any("can't be read" in problem for problem in found.problems), "the broken file is told"
    assert expected.problems == ()


def test_a_checkpoint_that_cannot_be_read_is_an_error_where_commits_are_missing(log):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b"))
    (log.log / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1 no")
    assert names(read(log)) == ["a", "b"]
    log.forget(0)
    with pytest.raises(TableError, match=r"0001\.checkpoint\.parquet.* The commit of version 0 is missing"):
        read(log)


def test_parsed_statistics_replace_missing_json(log):
    moment = datetime(2026, 1, 1, 0, 0, 0, 123000, UTC)
    values = pa.struct({"x": pa.int64(), "t": pa.timestamp("us", "UTC"), "g": pa.struct({"s": pa.string()})})
    nulls = pa.struct({"x": pa.int64(), "t": pa.int64(), "g": pa.struct({"s": pa.int64()})})
    kind = pa.struct({"numRecords": pa.int64(), "minValues": values, "maxValues": values, "nullCount": nulls})
    value = {"x": 5, "t": moment, "g": {"s": "b" * 32}}
    parsed = {
        "numRecords": 8,
        "minValues": value,
        "maxValues": value,
        "nullCount": {"x": 1, "t": 0, "g": {"s": 2}},
    }
    fields = (field("x", "long"), field("t", "timestamp"), field("g", struct(field("s", "string"))))
    head = (protocol(), metadata(*fields))
    body = {"path": "a", "partitionValues": {}, "size": 1, "stats_parsed": parsed}
    log.commit(*head)
    log.checkpoint(
        *head, {"add": body}, {"add": body | {"path": "b", "stats_parsed": None}}, schema=parsed_stats_schema(kind)
    )
    log.commit(add("c", stats=stats(2, {"x": 1}, {"x": 2}, {"x": 0})))
    snapshot = read(log)
    assert snapshot.files.rows.tolist() == [8, UNKNOWN, 2]
    assert [of(snapshot, "x", file) for file in range(3)] == [(5, 5, 1), (None, None, UNKNOWN), (1, 2, 0)]
    assert of(snapshot, "t") == (moment, moment + timedelta(microseconds=999), 0)
    assert of(snapshot, "g.s") == (b"b" * 32, b"b" * 32 + b"\xff", 2)


@pytest.mark.parametrize(("mode", "field_id"), [("name", None), ("id", 3)])
def test_statistics_use_physical_names(log, mode, field_id):
    def mapped(name, kind, physical, number):
        numbers = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
        return field(name, kind, metadata=numbers)

    inner = struct(mapped("lat", "double", "col-lat", 3))
    fields = (mapped("geo", inner, "col-geo", 2), mapped("p", "string", "col-p", 1))
    head = metadata(*fields, partitioning=["p"], configuration={"delta.columnMapping.mode": mode})
    values = {"col-geo": {"col-lat": 1.5}}
    text = stats(4, values, values, {"col-geo": {"col-lat": 1}})
    snapshot = read(log.commit(protocol(2, 5), head, add("f", stats=text, values={"col-p": "eu"})))
    assert of(snapshot, "geo.lat") == (1.5, 1.5, 1)
    assert (snapshot.physical["geo.lat"].path, snapshot.physical["geo.lat"].field_id) == ("col-geo.col-lat", field_id)
    assert snapshot.files.partitions == ("p=eu",)


def test_a_dotted_name_means_the_top_level_column(log):
    fields = (field("a", struct(field("b", "long"))), field("a.b", "long"))
    text = stats(1, {"a": {"b": 1}, "a.b": 2}, {"a": {"b": 1}, "a.b": 2}, {})
    assert of(read(log.commit(protocol(), metadata(*fields), add("f", stats=text))), "a.b")[:2] == (2, 2)


def test_every_type_of_the_protocol_has_an_arrow_type(log):
    kinds = ["string", "long", "integer", "short", "byte", "float", "double", "decimal(38,10)", "boolean", "binary"]
    kinds += ["date", "timestamp", "timestamp_ntz", "varchar(10)", "char(3)", "void", "variant"]
    kinds += [{"type": "array", "elementType": struct(field("e", "long")), "containsNull": False}]
    kinds += [{"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}]
    fields = [field(f"c{number}", kind) for number, kind in enumerate(kinds)]
    snapshot = read(log.commit(features("timestampNtz", "variantType"), metadata(*fields), add("f", stats=stats(3))))
    assert "c15" not in snapshot.schema.names, "void columns aren't in the files"
    assert snapshot.schema.field("c7").type == pa.decimal128(38, 10)
    assert snapshot.schema.field("c11").type == pa.timestamp("us", "UTC")
    assert snapshot.schema.field("c13").type == pa.string()
    assert str(snapshot.schema.field("c18").type) == "map<string, double>"
    assert "c16.value" in snapshot.physical
    for name, bounds in snapshot.files.bounds.items():
        assert (bounds.lower[0].as_py(), bounds.upper[0].as_py(), bounds.nulls[0]) == (None, None, UNKNOWN), name


def test_collated_strings_have_no_bounds(tmp_path):
    collated = {"__COLLATIONS": {"c": "ICU.UNICODE_CI"}}
    assert of(one_file(tmp_path, "string", "a", "b", metadata_=collated), "c") == (None, None, 0)


@pytest.mark.parametrize("kind", ["geometry", "decimal(99,1)", {"type": "union"}])
def test_an_unknown_type_is_an_error(log, kind):
    with pytest.raises(TableError, match="schema can't be read"):
        read(log.commit(protocol(), metadata(field("c", kind))))


def test_layouts_and_providers_are_found(log):
    layout = Layout.parse("zorder(x, s)")
    head = metadata(*(field("x", "long"),), configuration={"zonal.layouts.layout": layout.to_json(), "k": "v"})
    snapshot = read(
        log.commit(protocol(), head, add("f", tags={"zonal.layouts.layout": layout.id}, clusteringProvider="liquid"))
    )
    assert snapshot.layout == layout
    assert snapshot.files.layout_ids.to_pylist() == [layout.id]
    assert snapshot.properties["k"] == "v"
    assert snapshot.properties["clusteringProvider"] == "1"


def test_an_unreadable_layout_is_a_problem_and_no_error(log):
    snapshot = read(log.commit(protocol(), metadata(field("x", "long"), configuration={"zonal.layouts.layout": "{}"})))
    assert snapshot.layout is None
    assert "zonal.layouts.layout" in snapshot.problems[0]
    assert len(snapshot.files) == 0
    assert snapshot.files.bounds["x"].lower.to_pylist() == []


def test_in_commit_timestamps_come_first(log):
    info = {
        "inCommitTimestamp": 1000,
        "timestamp": 5,
        "operation": "WRITE",
        "operationParameters": {"mode": "x", "n": [1]},
    }
    log.commit({"commitInfo": info | {"userName": "somebody", "engineInfo": "e"}}, *HEAD)
    log.commit({"commitInfo": {"timestamp": 86_400_000}})
    log.commit(add("f"))
    snapshot = read(log)
    assert snapshot.commits[0].time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert snapshot.commits[0].details == {"mode": "x", "n": "[1]", "engineInfo": "e"}
    assert snapshot.commits[1].time == datetime(1970, 1, 2, tzinfo=UTC)
    assert snapshot.time is not None
    assert snapshot.time > datetime(2020, 1, 1, tzinfo=UTC), "no commitInfo: the time of the file"


def test_history_before_a_checkpoint_is_read_up_to_a_limit(log, monkeypatch):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b"))
    log.log.joinpath(f"{0:020d}.json").write_text(
        '{"add":{"path":"a"}}\n{"add": broken\n{"commitInfo":{"operation":"X"}}'
    )
    assert read(log).files.added_by.tolist() == [0, 1]
    assert read(log).commits[0].operation == "X"
    monkeypatch.setattr(deltalog, "HISTORY_BYTES", 10)
    assert read(log).files.added_by.tolist() == [UNKNOWN, UNKNOWN]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_gap_names_the_missing_version(log):
    log.commit(*HEAD).commit(add("a")).commit(add("b")).forget(1)
    with pytest.raises(TableError, match="the commit of version 1 is missing"):
        read(log)
    assert names(read(log, version=0)) == []


@pytest.mark.parametrize("version", [-1, 0, 1, 4])
def test_a_version_that_is_not_there_names_the_range(log, version):
    log.commit(*HEAD).commit().commit().checkpoint(*HEAD).commit().forget(0, 1)
    with pytest.raises(TableError, match=f"Version {version} of .* 2 to 3"):
        read(log, version=version)


@pytest.mark.parametrize("line", ['{"add":', "[1]", '"x"', '{"add":{}} {"add":{}}', "\ufffe"])
def test_a_corrupt_line_names_the_file_and_the_line(log, line):
    log.commit(*HEAD)
    log.log.joinpath(f"{1:020d}.json").write_text('{"commitInfo":{}}\n\n' + line)
    with pytest.raises(TableError, match=r"Line 3 of .*00001\.json"):
        read(log)


BROKEN = [
    {"add": {"size": 1}},
    {"add": {"path": "a"}},
    {"add": 3},
    {"add": {"path": 3, "size": 1}},
    add("a", values={"p": 3}),
    add("a", tags=[1]),
    add("a", deletionVector={"storageType": "u"}),
    {"metaData": {}},
    {"protocol": {}},
]


@pytest.mark.parametrize("action", BROKEN)
def test_an_action_without_its_fields_is_an_error(log, action):
    with pytest.raises(TableError, match="action"):
        read(log.commit(*HEAD, action))


def test_corrupt_files_of_the_log_are_named(log):
    log.commit(*HEAD).checkpoint(*HEAD).forget(0)
    log.log.joinpath(f"{0:020d}.checkpoint.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(TableError, match=r"000\.checkpoint\.parquet"):
        read(log)
    log.commit(*HEAD, version=0).commit().log.joinpath(f"{0:020d}.checkpoint.parquet").unlink()
    log.log.joinpath(f"{1:020d}.json").write_bytes(b"\xff\xfe")
    with pytest.raises(TableError, match=r"0001\.json"):
        read(log)


def test_a_folder_without_a_log_is_no_table(tmp_path):
    assert not is_delta(str(tmp_path))
    with pytest.raises(TableError, match="_delta_log"):
        read(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    assert is_delta(str(tmp_path))
    with pytest.raises(TableError, match="no commit and no checkpoint"):
        read(tmp_path)


@pytest.mark.parametrize(("actions", "missing"), [((HEAD[0],), "metaData"), ((HEAD[1],), "protocol")])
def test_a_log_without_its_first_actions_is_an_error(log, actions, missing):
    with pytest.raises(TableError, match=f"no {missing} action"):
        read(log.commit(*actions))


def test_unknown_reader_features_are_refused_by_name(log):
    log.commit(features("catalogManaged", "deletionVectors"), HEAD[1])
    with pytest.raises(TableError, match="feature 'catalogManaged'"):
        read(log)
    with pytest.raises(TableError, match="reader version 4"):
        read(log.commit(protocol(4, 7)))


def test_writer_features_block_a_rewrite_only(log):
    known = ["appendOnly", "rowTracking", "clustering", "inCommitTimestamp-preview", "checkpointProtection"]
    log.commit(protocol(1, 7, writer_features=known), HEAD[1])
    assert read(log).blockers == ()
    log.commit(protocol(1, 7, writer_features=[*known, "icebergCompatV2", "collations-preview", "later"]))
    assert read(log).blockers == tuple(
        f"table feature {name}" for name in ("collations-preview", "icebergCompatV2", "later")
    )
    log.commit(protocol(1, 8), metadata(configuration={"delta.universalFormat.enabledFormats": "iceberg"}))
    assert read(log).blockers == ("writer version 8", "table property delta.universalFormat.enabledFormats")


# --- storage ----------------------------------------------------------------------------------------------------------


def test_paths_are_decoded_once_and_may_be_absolute(log):
    paths = ["p=a%2520b/f", "../x%3Ay", "file:///elsewhere/a%20b", "file:/elsewhere/c", "/store/d", "s3://bucket/k%20y"]
    snapshot = read(log.commit(*HEAD, *map(add, paths)))
    assert snapshot.files.paths.to_pylist() == [
        *(f"{log}/p=a%20b/f", f"{log}/../x:y"),
        *("/elsewhere/a b", "/elsewhere/c", "/store/d", "s3://bucket/k y"),
    ]
    assert read(f"file://{log}").files.paths.equals(snapshot.files.paths), "a URI names the same files"


def test_two_writings_of_a_path_are_one_file(log):
    log.commit(*HEAD, add("a%20b")).commit(remove(f"file://{log}/a%20b"))
    assert names(read(log)) == []


@pytest.mark.parametrize("size", [-1, -(10**15), 2**44 + 1, 10**18, 10**30, 1.5, 1e12, float("nan"), "12", None, True])
def test_a_size_that_no_file_has_is_an_error_that_names_file_and_value(log, size):
    log.commit(*HEAD, add("part-1.parquet", size=size))
    with pytest.raises(TableError, match=r"size of '.*part-1\.parquet' can't be ") as caught:
        read(log)
    assert str(size) in str(caught.value)


def test_a_size_that_no_file_has_is_an_error_in_a_checkpoint_too(log):
    log.commit(*HEAD).checkpoint(*HEAD, add("part-1.parquet", size=-5))
    with pytest.raises(TableError, match=r"size of '.*part-1\.parquet' can't be -5"):
        read(log)


@pytest.mark.parametrize("path", ["a%00b", "a\0b", "\ud800.parquet", "x/\udfff"])
def test_a_path_that_no_file_has_is_an_error_that_names_it(log, path):
    text = "".join(json.dumps(action) + "\n" for action in (*HEAD, add(path)))
    (log.log / f"{0:020d}.json").write_text(text)
    with pytest.raises(TableError, match="no file can be called") as caught:
        read(log)
    str(caught.value).encode()


def test_a_removed_path_that_no_file_has_is_an_error_that_names_it(log):
    log.commit(*HEAD, add("a")).checkpoint(*HEAD, add("a"))
    (log.log / f"{1:020d}.json").write_text(json.dumps(remove("\ud800")))
    with pytest.raises(TableError, match=r"no file can be called '\\ud800'"):
        read(log)


@pytest.mark.parametrize("name", ["stats", "tags", "clusteringProvider"])
def test_half_a_character_in_what_is_said_of_a_file_is_an_error(log, name):
    value = {"zonal.layouts.layout": "\ud800"} if name == "tags" else "\ud800"
    (log.log / f"{0:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in (*HEAD, add("a", **{name: value}))))
    with pytest.raises(TableError):
        read(log)


def test_local_files_are_found_however_their_uri_is_written(log):
    paths = [
        f"file:{log.path}/a",
        f"file://{log.path}/b",
        f"file://localhost{log.path}/c",
        f"FILE://LOCALHOST{log.path}/d",
    ]
    log.commit(*HEAD, *map(add, paths))
    assert sorted(read(log).files.paths.to_pylist()) == [f"{log.path}/{name}" for name in "abcd"]
    assert read(f"file://localhost{log.path}").location == str(log.path)
    storage = Storage(str(log.path), {})
    assert storage.locate(f"file://localhost{log.path}/a")[1] == f"{log.path}/a"


def test_a_file_of_another_machine_is_refused(log):
    with pytest.raises(TableError, match="machine 'elsewhere'"):
        read(f"file://elsewhere{log.path}")
    with pytest.raises(TableError, match="machine 'elsewhere'"):
        Storage(str(log.path), {}).locate("file://elsewhere/x")
    log.commit(*HEAD, add("file://elsewhere/x"))
    with pytest.raises(TableError, match="machine 'elsewhere'"):
        read(log)


def test_a_pipe_is_refused_and_not_waited_for(log):
    os.mkfifo(log.path / "pipe")
    log.commit(*HEAD, add("pipe"))
    table = DeltaTable(str(log))
    with pytest.raises(TableError, match=r"/pipe'.* isn't a regular file"):
        table.open_file(table.snapshot().files.paths[0].as_py())
    with (
        pytest.raises(TableError, match=r"/pipe'.* isn't a regular file"),
        open_parquet(Storage(str(log.path), {}), f"{log.path}/pipe"),
    ):
        pass
    os.mkfifo(log.log / f"{1:020d}.json")
    with pytest.raises(TableError, match="isn't a regular file"):
        read(log)


def test_a_missing_data_file_is_named_when_opened(log):
    table = DeltaTable(str(log.commit(*HEAD, add("gone.parquet"))))
    with pytest.raises(TableError, match=r"gone\.parquet"):
        table.open_file(table.snapshot().files.paths[0].as_py())


def test_storage_options_have_their_usual_names():
    given = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t", "region": "eu-west-1"}
    expected = {"access_key": "k", "secret_key": "s", "session_token": "t", "region": "eu-west-1"}
    assert s3_arguments(Given((given,))) == expected
    plain = {"aws_endpoint_url": "minio:9000", "aws_allow_http": "true", "aws_skip_signature": "true"}
    assert s3_arguments(Given((plain,))) == {
        "endpoint_override": "minio:9000",
        "scheme": "http",
        "anonymous": True,
    }
    assert azure_arguments(Given(({"azure_storage_account_key": "k"},)), "box@acc.dfs.core.windows.net") == {
        "account_name": "acc",
        "account_key": "k",
    }


def test_credentials_are_in_no_name_and_no_message():
    table = DeltaTable("s3://user:secret@bucket/table/?region=eu-west-1", storage_options={"AWS_REGION": "eu-west-1"})
    assert table.name == "s3://bucket/table"
    with pytest.raises(TableError) as caught:
        DeltaTable("nowhere://user:secret@host/table").snapshot()
    assert "secret" not in str(caught.value)


def test_thousands_of_files_are_read_alike_from_a_checkpoint_and_from_commits(tmp_path):
    one = read(synthetic_table(tmp_path / "checkpoint", 3_000))
    other = read(synthetic_table(tmp_path / "commits", 3_000, checkpoint=False, commits=10))
    assert len(one.files) == len(other.files) == 3_000
    assert other.files.added_by.max() == 9
    assert [path.rpartition("/")[2] for path in one.files.paths.to_pylist()] == [
        path.rpartition("/")[2] for path in other.files.paths.to_pylist()
    ]
    for name in one.files.bounds:
        assert one.files.bounds[name].lower.equals(other.files.bounds[name].lower), name


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.integers(0, 12), max_size=2))
def test_checkpoints_change_nothing(tmp_path_factory, steps, checkpoints):
    """Adding and removing in any order gives the same files with and without checkpoints on the way."""
    log = LogWriter(tmp_path_factory.mktemp("table")).commit(*HEAD)
    live = set()
    for number, name in enumerate(steps):
        log.commit(remove(name) if name in live else add(name))
        live ^= {name}
        if number in checkpoints:
            log.checkpoint(*HEAD, *map(add, sorted(live)))
    assert names(read(log)) == sorted(live)


def test_nothing_is_written(log):
    log.commit(*HEAD, add("a"))
    before = sorted(log.path.rglob("*"))
    read(log)
    assert sorted(log.path.rglob("*")) == before
    assert json.loads(io.StringIO((log.log / f"{0:020d}.json").read_text()).readline())


# --- a table that is made anew while its log is read ------------------------------------------------------------------


def anew(log, commits):
    """Drop the table's log, and make another table of so many commits there."""
    for file in log.log.iterdir():
        file.unlink()
    other = LogWriter(log.path).commit(*HEAD, add("new-0"))
    for number in range(1, commits):
        other.commit(add(f"new-{number}"))


def meanwhile(monkeypatch, name, act, *, before=False):
    """Let another writer act once, after (or before) the first call of a method of `Log`."""
    real, acts, one = getattr(LogFolder, name), [act], Lock()

    def call(*given, **named):
        with one:  # commits are read by several threads
            if before and acts:
                acts.pop()()
            found = real(*given, **named)
            if acts:
                acts.pop()()
            return found

    monkeypatch.setattr(LogFolder, name, staticmethod(call) if name == "of" else call)


def remote(folder):
    """The log by a file system that isn't a local one, as that of an object store."""
    return pa.fs.SubTreeFileSystem(str(folder.parent), pa.fs.LocalFileSystem()), folder.name


def local(folder):
    return pa.fs.LocalFileSystem(), str(folder)


@pytest.mark.parametrize("place", [local, remote])
@pytest.mark.parametrize("commits", [1, 3, 5])
@pytest.mark.parametrize("when", ["of", "plan", "read"])
def test_a_table_that_is_made_anew_after_its_log_was_listed_is_never_taken_for_it(
    log, monkeypatch, place, commits, when
):
    log.commit(*HEAD, add("old-0")).commit(add("old-1")).commit(add("old-2"))
    meanwhile(monkeypatch, when, lambda: anew(log, commits))
    with pytest.raises(TableError, match=r"was replaced by another table's log|is gone|Can't read"):
        replay(LogFolder.of(*place(log.log)), str)


def test_commits_that_were_read_before_the_drop_make_no_table_with_those_after_it(log, monkeypatch):
    """The first commit is read last, from the new table, which has none of the others: they were read before."""
    log.commit(*HEAD, add("old-0")).commit(add("old-1")).commit(add("old-2"))

    def backward(self, infos):
        texts = [self.read(info) for info in reversed(list(infos)[1:])]
        if not texts:  # of a history before a checkpoint
            return iter(())
        anew(log, 1)
        return iter([self.read(self.commits[0]), *reversed(texts)])

    monkeypatch.setattr(LogFolder, "read_all", backward)
    with pytest.raises(TableError, match="was replaced by another table's log"):
        replay(LogFolder.of(*local(log.log)), str)


@pytest.mark.parametrize("place", [local, remote])
def test_a_log_that_is_cleaned_up_while_it_is_read_is_the_same_table(log, monkeypatch, place):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b")).commit(add("c"))
    expected = replay(LogFolder.of(*place(log.log)), str)
    meanwhile(monkeypatch, "prove", lambda: log.forget(0, 1), before=True)
    found = replay(LogFolder.of(*place(log.log)), str)
    assert [each.rows.to_pydict() for each in found.adds] == [each.rows.to_pydict() for each in expected.adds]


def test_a_version_whose_commit_is_cleaned_up_while_it_is_read_is_proved_by_its_checkpoint(log, monkeypatch):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b")).commit(add("c"))
    meanwhile(monkeypatch, "prove", lambda: log.forget(0, 1), before=True)
    found = replay(LogFolder.of(*local(log.log)), str, version=1)
    assert {path for each in found.adds for path in each.rows["path"].to_pylist()} == {"a", "b"}


def test_a_version_that_is_cleaned_up_while_it_is_read_is_said_to_be_gone(log, monkeypatch):
    log.commit(*HEAD, add("a")).commit(add("b"))
    meanwhile(monkeypatch, "prove", lambda: log.forget(0), before=True)
    with pytest.raises(TableError, match=r"0\.json.* is gone: .* cleaned up"):
        replay(LogFolder.of(*local(log.log)), str, version=0)
