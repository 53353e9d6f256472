"""Deletion vectors, position deletes and equality deletes remove exactly the rows that they name."""

import datetime as dt
import math
import tempfile
import zlib
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.reader_files import NUMBERS, bitmap, live, reader, source, write_numbers
from zonal.errors import TableError
from zonal.plan.rewrite import FIELD_ID, EqualityDelete, Reading, Vector

UTC = dt.timezone.utc
NAN, NEGATIVE_ZERO = math.nan, -0.0


def field(name, kind, number, nullable=True):
    return pa.field(name, kind, nullable, {FIELD_ID: str(number)})


def framed(data):
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_left_are_those_that_no_position_deletes(data):
    rows = data.draw(st.integers(0, 60))
    any_rows = st.sets(st.integers(0, rows - 1)) if rows else st.just(set())
    vector, first, second, others = (data.draw(any_rows) for _ in range(4))
    with tempfile.TemporaryDirectory() as folder:
        path = write_numbers(folder, rows, data.draw(st.integers(1, 61)))
        inline = data.draw(st.booleans())
        raw = bitmap(vector)
        Path(folder, "dv.bin").write_bytes(b"junk" + framed(raw) + b"junk")
        place = {"inline": raw} if inline else {"location": f"{folder}/dv.bin", "offset": 4, "size": len(raw) + 8}
        spellings = st.sampled_from([str(path), f"file:{path}", f"file://{path}"])
        for name, chosen in (("first", first), ("second", second)):
            lines = [(data.draw(spellings), p) for p in chosen] + [(f"{folder}/other.parquet", p) for p in others]
            table = pa.table({"file_path": [p for p, _ in sorted(lines)], "pos": [p for _, p in sorted(lines)]})
            kinds = pa.schema([field("file_path", pa.string(), 2147483546), field("pos", pa.int64(), 2147483545)])
            by_id = data.draw(st.booleans())
            table = (
                table.cast(kinds).rename_columns(["a", "b"])
                if by_id
                else table.cast(pa.schema({"file_path": pa.string(), "pos": pa.int64()}))
            )
            options = {"write_statistics": data.draw(st.booleans()), "row_group_size": data.draw(st.integers(1, 20))}
            pq.write_table(table.select(data.draw(st.permutations(table.column_names))), f"{folder}/{name}", **options)
        file = source(
            path,
            rows=rows,
            vector=Vector(len(vector), **place),
            position_deletes=(f"{folder}/first", f"{folder}/second"),
        )
        own = reader(path, NUMBERS)
        left = [p for p in range(rows) if p not in vector | first | second]
        for _ in range(2):  # the second time from what the reader keeps
            parts = list(own.rows(file))
            assert live(parts) == [(p, p * 7) for p in left]
            assert sum(part.read for part in parts) == rows
        assert [part.read for part in parts] == [group.rows for group in own.row_groups(file)]


KEYS = {
    "i": (pa.int32(), [0, 1, -1, None]),
    "f": (pa.float32(), [0.0, NEGATIVE_ZERO, NAN, -NAN, 1.5, math.inf, None]),
    "d": (pa.float64(), [0.0, NEGATIVE_ZERO, NAN, None]),
    "s": (pa.string(), ["", "a", "ab", "é", None]),
    "b": (pa.binary(), [b"", b"\0", None]),
    "n": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("1.25"), None]),
    "t": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 1, 1, tzinfo=UTC), dt.datetime(1, 1, 1, tzinfo=UTC), None]),
    "day": (pa.date32(), [dt.date(2026, 1, 1), None]),
    "o": (pa.bool_(), [True, False, None]),
    "u": (pa.uuid(), [b"0" * 16, b"1" * 16, None]),
    "v": (pa.string_view(), ["a", "a much longer value than a view holds", None]),
}
IDS = {name: number for number, name in enumerate(KEYS, 10)}
STRUCT = pa.struct([field("x", pa.int64(), 31), field("y", pa.string(), 32)])
STRUCTS = [None, {"x": None, "y": "a"}, {"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": 2, "y": "b"}]
KEYED = pa.schema(
    [*(field(name, KEYS[name][0], IDS[name]) for name in KEYS), field("st", STRUCT, 30), field("row", pa.int64(), 1)]
)


def java_key(value):
    """A key that is equal for two values iff Java's comparators treat them as equal."""
    return ("nan",) if isinstance(value, float) and math.isnan(value) else (str(value), type(value).__name__)


def keyed_table(rows, schema):
    columns = [
        pa.array([row[f.name] for row in rows], pa.binary(16) if f.type == pa.uuid() else f.type) for f in schema
    ]
    columns = [
        pa.ExtensionArray.from_storage(pa.uuid(), column) if f.type == pa.uuid() else column
        for column, f in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_left_are_those_that_equal_no_deleted_key(data):
    values = {**{name: st.sampled_from(known) for name, (_, known) in KEYS.items()}, "st": st.sampled_from(STRUCTS)}
    row = st.fixed_dictionaries(values)
    rows = [{**one, "row": i} for i, one in enumerate(data.draw(st.lists(row, min_size=1, max_size=40)))]
    gone = set()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.parquet"
        pq.write_table(keyed_table(rows, KEYED), path, row_group_size=data.draw(st.integers(1, 40)))
        deletes = []
        for number in range(data.draw(st.integers(1, 4))):
            names = data.draw(st.lists(st.sampled_from([*KEYS, "st.x"]), min_size=1, max_size=3, unique=True))
            keys = data.draw(st.lists(row, max_size=3)) + data.draw(st.lists(st.sampled_from(rows), max_size=3))
            fields = [
                pa.field(f.name, pa.struct([STRUCT.field(0)]), True, f.metadata) if f.name == "st" else f for f in KEYED
            ]
            tops = {name.partition(".")[0] for name in names}
            schema = pa.schema([f for f in fields if f.name in tops])
            pq.write_table(keyed_table(keys, schema), f"{folder}/{number}", row_group_size=2)
            ids = [31 if name == "st.x" else IDS[name] for name in names]
            deletes.append(EqualityDelete(f"{folder}/{number}", tuple(ids)))

            def key(one, names=tuple(names)):
                return tuple(java_key((one["st"] or {}).get("x") if n == "st.x" else one[n]) for n in names)

            gone |= {one["row"] for one in rows if key(one) in set(map(key, keys))}
        file = source(path, rows=len(rows), equality_deletes=tuple(deletes))
        columns = data.draw(st.sampled_from([None, ["row"], ["row", "s"]]))
        own = reader(path, Reading(KEYED, by_id=True))
        for _ in range(2):
            parts = list(own.rows(file, columns=columns))
            assert [n for part in parts for n in part.data["row"].to_pylist()] == sorted(set(range(len(rows))) - gone)
            assert all(part.data["row"].to_pylist() == part.positions.tolist() for part in parts)
            names = columns or KEYED.names
            assert all(part.data.column_names == names for part in parts), "columns for deletes only are dropped"


def test_equality_deletes_compare_in_the_types_of_the_table(tmp_path):
    old, now = field("k", pa.int32(), 1), field("key", pa.int64(), 1)
    pq.write_table(pa.table([[1, 2, 3]], pa.schema([old])), tmp_path / "a.parquet")
    pq.write_table(pa.table([[2, 2**40]], pa.schema([now])), tmp_path / "d.parquet")
    file = source(tmp_path / "a.parquet", equality_deletes=(EqualityDelete(str(tmp_path / "d.parquet"), (1,)),))
    (part,) = reader(tmp_path / "a.parquet", Reading(pa.schema([now]), by_id=True)).rows(file)
    assert part.data.to_pylist() == [{"key": 1}, {"key": 3}]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_equality_deletes_take_all_nans_for_equal_and_zeros_for_different(kind, tmp_path):
    bits = np.dtype(f"u{kind.bit_width // 8}")
    quiet, negative, other = np.array([NAN, -NAN, NAN], kind.to_pandas_dtype()).view(bits) | np.array([0, 0, 1], bits)
    values = np.array([quiet, negative, other, 0, 1 << (kind.bit_width - 1), 1], bits).view(kind.to_pandas_dtype())
    schema = pa.schema([field("x", kind, 1)])
    pq.write_table(pa.table([pa.array(values)], schema), tmp_path / "a.parquet")
    file = source(tmp_path / "a.parquet", equality_deletes=(EqualityDelete(str(tmp_path / "d.parquet"), (1,)),))
    for key, left in ((quiet, [3, 4, 5]), (other, [3, 4, 5]), (0, [0, 1, 2, 4, 5]), (bits.type(1), [0, 1, 2, 3, 4])):
        pq.write_table(pa.table([np.array([key], bits).view(kind.to_pandas_dtype())], schema), tmp_path / "d.parquet")
        (part,) = reader(tmp_path / "a.parquet", Reading(schema, by_id=True)).rows(file)
        assert part.positions.tolist() == left


def test_equality_deletes_find_default_values_and_constants(tmp_path):
    schema = pa.schema([field("n", pa.int64(), 1), field("added", pa.string(), 2), field("part", pa.string(), 3)])
    pq.write_table(pa.table([[1, 2]], pa.schema([schema.field(0)])), tmp_path / "a.parquet")
    deleted = pa.Table.from_pylist(
        [{"n": 1, "added": "new", "part": "p"}, {"n": 2, "added": None, "part": "p"}], schema
    )
    pq.write_table(deleted, tmp_path / "d.parquet")
    file = source(
        tmp_path / "a.parquet",
        equality_deletes=(EqualityDelete(str(tmp_path / "d.parquet"), (3, 2, 1)),),
        constants={"part": pa.scalar("p")},
    )
    reading = Reading(schema, by_id=True, defaults={2: pa.scalar("new")})
    (part,) = reader(tmp_path / "a.parquet", reading).rows(file, columns=["n"])
    assert part.data.to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ((9,), r"field ids \[9\], which are no columns"),
        ((), "no columns"),
        ((2,), "lacks the column 'm'"),
        ((3,), "compared"),
    ],
)
def test_equality_deletes_that_cannot_be_applied_are_refused_by_name(ids, message, tmp_path):
    schema = pa.schema(
        [field("n", pa.int64(), 1), field("m", pa.int64(), 2), field("l", pa.list_(field("element", pa.int8(), 4)), 3)]
    )
    pq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pylist([{"n": 1, "m": 1, "l": [1]}], schema), tmp_path / "a.parquet")
    pq.write_table(schema.empty_table().select(["n", "l"]), tmp_path / "d.parquet")
    file = source(tmp_path / "a.parquet", equality_deletes=(EqualityDelete(str(tmp_path / "d.parquet"), ids),))
    with pytest.raises(TableError, match=rf"d\.parquet.*{message}"):
        list(reader(tmp_path / "a.parquet", Reading(schema, by_id=True)).rows(file))


VECTOR = bitmap({1, 5})
BROKEN_VECTORS = {
    "beyond the file": (framed(VECTOR), {"size": 999}, "beyond its"),
    "negative offset": (framed(VECTOR), {"offset": -4}, "beyond its"),
    "other length": (b"\0\0\0\x01" + framed(VECTOR)[4:], {}, "another length"),
    "other checksum": (framed(VECTOR)[:-1] + b"\0", {}, "checksum is another"),
    "other magic": (framed(b"\0\0\0\0" + VECTOR[4:]), {}, "doesn't begin with the number 1681511377"),
    "other count": (framed(VECTOR), {"rows": 3}, "2 positions instead of 3"),
    "more than the file's rows": (framed(VECTOR), {"rows": 101}, "101 positions for a file of 100 rows"),
    "position beyond the file": (framed(bitmap({1, 100})), {}, "deletes row 100 of .*which has 100 rows"),
}


@pytest.mark.parametrize("case", BROKEN_VECTORS)
def test_broken_deletion_vectors_are_refused_by_name(case, tmp_path):
    raw, changes, message = BROKEN_VECTORS[case]
    path = write_numbers(tmp_path)
    (tmp_path / "dv.bin").write_bytes(raw)
    vector = Vector(**{"rows": 2, "location": str(tmp_path / "dv.bin"), "size": len(raw), **changes})
    with pytest.raises(TableError, match=rf"dv\.bin.*{message}"):
        list(reader(path, NUMBERS).rows(source(path, vector=vector)))
    with pytest.raises(TableError, match=r"gone\.bin' doesn't exist"):
        list(reader(path, NUMBERS).rows(source(path, vector=Vector(2, str(tmp_path / "gone.bin"), 0, 50))))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"file_path": ["PATH"], "pos": [100]}, "deletes row 100 of .*which has 100 rows"),
        ({"file_path": ["PATH"], "pos": [-1]}, "deletes row -1 of .*which has 100 rows"),
        ({"file_path": ["PATH"]}, "lacks the column 'pos'"),
        ({"file_path": ["PATH"], "pos": pa.array([None], pa.int64())}, "required column 'pos' has nulls"),
        ({"file_path": ["PATH"], "pos": ["1"]}, "column 'pos' is string"),
    ],
)
def test_broken_position_deletes_are_refused_by_name(columns, message, tmp_path):
    path = write_numbers(tmp_path)
    columns = {**columns, "file_path": [str(path)]}
    pq.write_table(pa.table(columns), tmp_path / "deletes.parquet")
    with pytest.raises(TableError, match=rf"deletes\.parquet.*{message}"):
        list(reader(path, NUMBERS).rows(source(path, position_deletes=(str(tmp_path / "deletes.parquet"),))))


@pytest.mark.parametrize("start", ["", "file:", "file://", "file://localhost"])
@pytest.mark.parametrize("own", ["", "file://localhost"])
def test_position_deletes_apply_however_the_path_of_the_file_is_written(start, own, tmp_path):
    path = write_numbers(tmp_path)
    pq.write_table(pa.table({"file_path": [f"{start}{path}"], "pos": [7]}), tmp_path / "deletes.parquet")
    deletes = (str(tmp_path / "deletes.parquet"),)
    parts = list(reader(path, NUMBERS).rows(source(f"{own}{path}", position_deletes=deletes)))
    assert sum(part.data.num_rows for part in parts) == 99
    assert 7 not in [position for part in parts for position in part.positions.tolist()]


def test_only_row_groups_of_a_delete_file_that_concern_the_file_are_read(tmp_path):
    path = write_numbers(tmp_path)
    paths = [str(path)] * 10 + ["/zzz"] * 10
    deletes = tmp_path / "deletes.parquet"
    pq.write_table(pa.table({"file_path": paths, "pos": range(20)}), deletes, row_group_size=10)
    footer = pq.ParquetFile(deletes).metadata
    chunk = footer.row_group(1).column(1)
    raw = bytearray(deletes.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    raw[start : start + 20] = b"\xff" * 20  # whoever reads the second row group fails
    deletes.write_bytes(raw)
    (first, *_) = reader(path, NUMBERS).rows(source(path, position_deletes=(str(deletes),)))
    assert first.positions.tolist() == list(range(10, 30))
