"""Rows of files with any older schema are read in the table's schema with the same values, or refused."""

import datetime as dt
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zonal.errors import TableError
from zonal.plan.rewrite import FIELD_ID, Reading, Source
from zonal.storage import Storage
from zonal.worker.problem import FileError
from zonal.worker.read.nulls import empty
from zonal.worker.read.projection import ArrowFileSchema, project
from zonal.worker.read.promotion import promotion
from zonal.worker.read.reader import Reader

UTC = dt.timezone.utc
MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
INTS = st.integers(-128, 127)
TEXT = st.text("aé", max_size=3)
SAME = lambda value: value  # noqa: E731

LEAVES = [
    (pa.int8(), pa.int64(), INTS, SAME),
    (pa.int16(), pa.int32(), INTS, SAME),
    (pa.int32(), pa.int64(), INTS, SAME),
    (pa.int32(), pa.float64(), INTS, SAME),
    (pa.int32(), pa.decimal128(12, 2), INTS, Decimal),
    (pa.int64(), pa.decimal128(20, 0), INTS, Decimal),
    (pa.int64(), pa.int64(), st.integers(-(2**63), 2**63 - 1), SAME),
    (pa.uint8(), pa.int16(), st.integers(0, 255), SAME),
    (pa.float32(), pa.float64(), st.floats(width=32, allow_nan=False), SAME),
    (pa.decimal128(9, 2), pa.decimal128(18, 4), st.decimals(-999, 999, places=2, allow_nan=False), SAME),
    (pa.date32(), pa.timestamp("us"), st.dates(), lambda day: dt.datetime(day.year, day.month, day.day)),
    (pa.timestamp("ms"), pa.timestamp("us"), MOMENTS.map(lambda t: t.replace(microsecond=7000)), SAME),
    (pa.timestamp("ns"), pa.timestamp("us"), MOMENTS, SAME),
    (
        pa.timestamp("us", "Europe/Berlin"),
        pa.timestamp("us", "UTC"),
        MOMENTS.map(lambda t: t.replace(tzinfo=UTC)),
        SAME,
    ),
    (pa.string(), pa.large_string(), TEXT, SAME),
    (pa.large_string(), pa.string(), TEXT, SAME),
    (pa.string(), pa.binary(), TEXT, str.encode),
    (pa.binary(), pa.string(), TEXT.map(str.encode), bytes.decode),
    (pa.binary(16), pa.uuid(), st.binary(min_size=16, max_size=16), lambda raw: UUID(bytes=raw)),
    (pa.time32("ms"), pa.time64("us"), st.times().map(lambda t: t.replace(microsecond=1000)), SAME),
    (pa.bool_(), pa.bool_(), st.booleans(), SAME),
    (pa.string(), pa.string(), TEXT, SAME),
]


@dataclass(frozen=True, eq=False)
class Evolved:
    """A field as it was when the file was written and as it is now; `kind` is leaf, struct, list or map."""

    id: int
    old: str | None
    new: str | None
    kind: str
    required: bool = False
    was_required: bool = False
    leaf: tuple = ()
    children: tuple = ()
    order: tuple = field(default=())

    def old_type(self, ids):
        return self._type(ids, "old", self.leaf and self.leaf[0])

    def new_type(self):
        return self._type(True, "new", self.leaf and self.leaf[1])

    def _type(self, ids, when, leaf):
        below = [child.field(ids, when) for child in self.version(when)]
        if self.kind == "leaf":
            return leaf
        if self.kind == "struct":
            return pa.struct(below)
        return pa.list_(below[0]) if self.kind == "list" else pa.map_(below[0].with_nullable(False), below[1])

    def version(self, when):
        there = [child for child in self.children if getattr(child, when) is not None]
        return [there[i] for i in self.order if i < len(there)] if when == "new" else there

    def field(self, ids, when):
        kind = self.old_type(ids) if when == "old" else self.new_type()
        nullable = not (self.was_required if when == "old" else self.required)
        return pa.field(getattr(self, when), kind, nullable, {FIELD_ID: str(self.id)} if ids else None)

    def values(self):
        value = self._values()
        return value if self.required or self.was_required else st.one_of(st.none(), value)

    def _values(self):
        if self.kind == "leaf":
            return self.leaf[2]
        if self.kind == "struct":
            return st.fixed_dictionaries({child.old: child.values() for child in self.version("old")})
        if self.kind == "list":
            return st.lists(self.children[0].values(), max_size=3)
        key, item = (child.values() for child in self.children)
        return st.lists(st.tuples(key, item), max_size=3, unique_by=lambda pair: pair[0])

    def now(self, value):
        """The value in the table of a value in the file."""
        if value is None or self.old is None:
            return None
        if self.kind == "leaf":
            return self.leaf[3](value)
        if self.kind == "struct":
            return {child.new: child.now(value.get(child.old)) for child in self.version("new")}
        if self.kind == "list":
            return [self.children[0].now(item) for item in value]
        key, item = self.children
        return [(key.now(k), item.now(v)) for k, v in value]


@st.composite
def evolved(draw, numbers, *, renames, depth=0, place=None):
    number = next(numbers)
    kind = draw(st.sampled_from(["leaf"] * 3 + ["struct", "list", "map"])) if depth < 3 else "leaf"
    name = place or f"c{number}"
    fate = "kept" if place else draw(st.sampled_from(["kept", "kept", "kept", "dropped", "added"]))
    renamed = renames and not place and draw(st.booleans())
    old = None if fate == "added" else name
    new = None if fate == "dropped" else f"new {number}" if renamed else name
    strict = fate == "kept" and draw(st.integers(0, 4)) == 0
    required = {"required": strict, "was_required": strict and draw(st.booleans())}
    if place == "key":
        kind, required = "leaf", {"required": True, "was_required": True}
    below = {"renames": renames, "depth": depth + 1}
    if kind == "leaf":
        leaf = (pa.string(), pa.string(), TEXT, SAME) if place == "key" else draw(st.sampled_from(LEAVES))
        return Evolved(number, old, new, kind, leaf=leaf, **required)
    if kind != "struct":
        places = ["element"] if kind == "list" else ["key", "value"]
        children = tuple(draw(evolved(numbers, place=where, **below)) for where in places)
        return Evolved(number, old, new, kind, children=children, order=tuple(range(len(children))), **required)
    children = [draw(evolved(numbers, **below)) for _ in range(draw(st.integers(1, 3)))]
    # Parquet has no structs without fields.
    always = Evolved(next(numbers), f"{name}_x", f"{name}_x", "leaf", leaf=LEAVES[0])
    order = draw(st.permutations(range(len(children) + 1)))
    return Evolved(number, old, new, kind, children=(*children, always), order=tuple(order), **required)


def read(path, reading, **source):
    folder = str(Path(path).parent)
    rows = list(Reader(reading, Storage(folder, {})).rows(Source(0, str(path), 0, -1, 0, **source)))
    return pa.concat_tables([empty(reading.schema), *(part.data for part in rows)])


def aliases_of(fields):
    found = {}
    for one in fields:
        found[one.id] = (one.old or "nothing", "an older name")
        found |= aliases_of(one.children)
    return found


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_file_of_an_older_schema_has_the_values_of_the_new_one(data):
    how = data.draw(st.sampled_from(["id", "name", "alias"]))
    numbers = count(1)
    kept = Evolved(next(numbers), "k", "k", "leaf", leaf=LEAVES[0])
    fields = [kept, *(data.draw(evolved(numbers, renames=how != "name")) for _ in range(data.draw(st.integers(1, 4))))]
    old = [one for one in fields if one.old is not None]
    new = data.draw(st.permutations([one for one in fields if one.new is not None]))
    rows = data.draw(st.lists(st.fixed_dictionaries({one.old: one.values() for one in old}), max_size=12))
    stored = pa.schema([one.field(how == "id", "old") for one in old])
    wanted = pa.schema([one.field(True, "new") for one in new])
    reading = Reading(wanted, by_id=how != "name", aliases=aliases_of(fields) if how == "alias" else {})
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.parquet"
        options = {"store_schema": data.draw(st.booleans()), "row_group_size": data.draw(st.integers(1, 12))}
        columns = [pa.array([row[one.old] for row in rows], stored.field(i).type) for i, one in enumerate(old)]
        pq.write_table(pa.Table.from_arrays(columns, schema=stored), path, **options)
        found = read(path, reading)
        found.validate(full=True)
        expected = [{one.new: one.now(row.get(one.old)) for one in new} for row in rows]
        assert found.to_pylist() == expected
        assert found.schema.equals(wanted, check_metadata=True)
        pq.write_table(found, path)
        assert pq.read_table(path).to_pylist() == expected, "the rows can be written again"


def number(i):
    return {FIELD_ID: str(i)}


def write(folder, table, **options):
    path = folder / "a.parquet"
    pq.write_table(table, path, **options)
    return path


def test_a_dropped_and_added_column_of_the_same_name_is_another_column(tmp_path):
    stored = pa.schema([pa.field("s", pa.struct([pa.field("x", pa.int32(), metadata=number(2))]), metadata=number(1))])
    wanted = pa.schema([pa.field("s", pa.struct([pa.field("x", pa.int32(), metadata=number(3))]), metadata=number(1))])
    path = write(tmp_path, pa.Table.from_pylist([{"s": {"x": 7}}, {"s": None}], stored))
    assert read(path, Reading(wanted, by_id=True)).to_pylist() == [{"s": {"x": None}}, {"s": None}]


def test_missing_columns_take_their_default_at_every_level(tmp_path):
    x = pa.field("x", pa.int32(), metadata=number(2))
    y = pa.field("y", pa.int64(), nullable=False, metadata=number(3))
    stored = pa.schema([pa.field("s", pa.struct([x]), metadata=number(1))])
    z = pa.field("z", pa.string(), metadata=number(4))
    wanted = pa.schema([pa.field("s", pa.struct([x, y]), metadata=number(1)), z])
    path = write(tmp_path, pa.Table.from_pylist([{"s": {"x": 7}}, {"s": None}], stored))
    defaults = {3: pa.scalar(5, pa.int32()), 4: pa.scalar("new")}
    found = read(path, Reading(wanted, by_id=True, defaults=defaults)).to_pylist()
    assert found == [{"s": {"x": 7, "y": 5}, "z": "new"}, {"s": None, "z": "new"}]
    with pytest.raises(TableError, match=r"a\.parquet.*lacks the required column 's\.y'"):
        read(path, Reading(wanted, by_id=True))


def test_files_without_ids_need_a_name_mapping(tmp_path):
    path = write(tmp_path, pa.table({"a": [1]}))
    wanted = pa.schema([pa.field("b", pa.int64(), metadata=number(1))])
    assert read(path, Reading(wanted, by_id=True, aliases={1: ("b", "a")})).to_pylist() == [{"b": 1}]
    with pytest.raises(TableError, match="no field ids, and the table has no name mapping"):
        read(path, Reading(wanted, by_id=True))
    with pytest.raises(TableError, match="names none of its columns"):
        read(path, Reading(wanted, by_id=True, aliases={1: ("b",)}))


def test_names_match_exactly_first_and_then_whatever_their_case(tmp_path):
    path = write(tmp_path, pa.table({"A": [1], "b": [2], "B": [3]}))
    wanted = pa.schema({"a": pa.int64(), "b": pa.int64()})
    assert read(path, Reading(wanted)).to_pylist() == [{"a": 1, "b": 2}]
    both = pa.schema({"a": pa.int64(), "A": pa.int64()})
    assert read(path, Reading(both)).to_pylist() == [{"a": None, "A": 1}], "a column is no two columns"
    path = write(tmp_path, pa.table({"Ab": [1], "aB": [2]}))
    with pytest.raises(TableError, match="no column 'ab', and several that differ in case"):
        read(path, Reading(pa.schema({"ab": pa.int64()})))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1], pa.int64()), pa.int32()),
        (pa.array([1.0], pa.float64()), pa.float32()),
        (pa.array([1], pa.int64()), pa.float64()),
        (pa.array([1], pa.uint32()), pa.int32()),
        (pa.array([1], pa.int32()), pa.uint32()),
        (pa.array([1], pa.int32()), pa.decimal128(9, 0)),
        (pa.array([1], pa.int32()), pa.string()),
        (pa.array(["1"]), pa.int32()),
        (pa.array([Decimal("1.25")], pa.decimal128(9, 2)), pa.decimal128(9, 3)),
        (pa.array([Decimal("1.25")], pa.decimal128(9, 2)), pa.decimal128(18, 1)),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([0], pa.date32()), pa.timestamp("us", "UTC")),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([2**62], pa.timestamp("us")), pa.timestamp("ns")),
        (pa.array([b"\xff"]), pa.string()),
        (pa.array([b"1234"], pa.binary(4)), pa.binary(5)),
        (pa.array([b"0" * 16]), pa.uuid()),
        (pa.array([[1]], pa.list_(pa.int64())), pa.list_(pa.int32())),
        (pa.array([[1]], pa.list_(pa.int64())), pa.int64()),
        (pa.array([{"x": 1}]), pa.struct({"x": pa.int32()})),
        (pa.array([{"x": 1}]), pa.map_(pa.string(), pa.int64())),
        (pa.array([True]), pa.int8()),
    ],
)
def test_types_that_could_change_a_value_are_refused_by_name(values, wanted, tmp_path):
    path = write(tmp_path, pa.table({"the column": values}))
    with pytest.raises(TableError, match=r"a\.parquet.*column 'the column.*can't be read as") as refused:
        read(path, Reading(pa.schema({"the column": wanted})))
    inner = values.type.field(0).type if pa.types.is_nested(values.type) and wanted != pa.int64() else values.type
    assert str(inner).split("<")[0] in str(refused.value)


@pytest.mark.parametrize("zone", ["UTC", None])
def test_timestamps_of_older_writers_are_instants_or_not_as_the_table_says(zone, tmp_path):
    moments = [dt.datetime(2026, 1, 1, 0, 0, 0, 5), dt.datetime(9999, 12, 31, 23), None]
    path = write(tmp_path, pa.table({"t": pa.array(moments, pa.timestamp("us"))}), use_deprecated_int96_timestamps=True)
    expected = pa.array(moments, pa.timestamp("us")).view(pa.timestamp("us", zone))
    reading = Reading(pa.schema({"t": pa.timestamp("us", zone)}))
    assert read(path, reading)["t"].combine_chunks().equals(expected)
    nested = pa.array([{"n": 1, "t": [value]} for value in moments])
    path = write(tmp_path, pa.table({"a": [1, 2, 3], "s": nested}), use_deprecated_int96_timestamps=True)
    wanted = pa.schema({"s": pa.struct({"t": pa.list_(pa.timestamp("us", zone))})})
    assert read(path, Reading(wanted))["s"].combine_chunks().field(0).values.equals(expected)
    maps = pa.array([[("k", value)] for value in moments], pa.map_(pa.string(), pa.timestamp("us")))
    path = write(tmp_path, pa.table({"m": maps}), use_deprecated_int96_timestamps=True)
    wanted = pa.schema({"m": pa.map_(pa.string(), pa.timestamp("us", zone))})
    assert read(path, Reading(wanted))["m"].combine_chunks().items.equals(expected)


def test_required_columns_refuse_nulls_but_not_below_a_null_struct(tmp_path):
    inner = pa.struct([pa.field("y", pa.int32(), nullable=False)])
    outer = pa.struct([pa.field("t", inner, nullable=False)])
    path = write(tmp_path, pa.table({"s": pa.array([{"t": {"y": 1}}, None])}))
    reading = Reading(pa.schema({"s": outer}))
    found = read(path, Reading(pa.schema({"s": pa.struct([pa.field("t", pa.struct({"y": pa.int64()}))])})))
    assert found.to_pylist() == [{"s": {"t": {"y": 1}}}, {"s": None}]
    narrow = pa.struct({"t": pa.struct({"y": pa.int32()})})
    path = write(tmp_path, pa.table({"s": pa.array([{"t": {"y": 1}}, None], narrow)}))
    found = read(path, reading)
    assert found.to_pylist() == [{"s": {"t": {"y": 1}}}, {"s": None}]
    half = pa.struct([pa.field("t", pa.struct({"y": pa.int32()}), nullable=False)])
    for again in (found, pa.table({"s": pa.array([{"t": {"y": 1}}, None], half)})):
        assert read(write(tmp_path, again), reading).to_pylist() == found.to_pylist()
    path = write(tmp_path, pa.table({"s": pa.array([{"t": {"y": None}}, None], narrow)}))
    with pytest.raises(TableError, match=r"required column 's\.t\.y' has nulls"):
        read(path, reading)
    path = write(tmp_path, pa.table({"s": pa.array([{"t": None}], narrow)}))
    with pytest.raises(TableError, match=r"required column 's\.t' has nulls"):
        read(path, reading)
    path = write(tmp_path, pa.table({"a": pa.array([1, None])}))
    with pytest.raises(TableError, match="required column 'a' has nulls"):
        read(path, Reading(pa.schema([pa.field("a", pa.int64(), nullable=False)])))


def test_dictionaries_views_and_other_kinds_of_lists_are_read(tmp_path):
    table = pa.table(
        {
            "d": pa.array(["a", None, "a"]).dictionary_encode(),
            "v": pa.array(["a", None, "b"]),
            "l": pa.array([[1], None, [2, 3]], pa.large_list(pa.int32())),
            "f": pa.array([[1, 2], [5, 6], [3, 4]], pa.list_(pa.int32(), 2)),
        }
    )
    wanted = pa.schema({"d": pa.string(), "v": pa.string_view(), "l": pa.list_(pa.int64()), "f": pa.list_(pa.int64())})
    found = read(write(tmp_path, table), Reading(wanted))
    found.validate(full=True)
    assert found.to_pylist() == table.to_pylist()


def test_names_with_dots_are_no_paths(tmp_path):
    table = pa.table({"a": pa.array([{"b": 1}]), "a.b": [2], "c": [3]})
    path = write(tmp_path, table)
    for name in table.column_names:
        assert read(path, Reading(table.select([name]).schema)).equals(table.select([name]))


@pytest.mark.parametrize("kind", [pa.struct({"x": pa.int64()}), pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())])
def test_sliced_arrays_keep_their_values(kind):
    values = {"struct": {"x": 1}, "list": [1], "map": [("a", 1)]}[str(kind).partition("<")[0]]
    array = pa.array([values, None, values, values], kind)[1:]
    wider = {"struct": pa.struct({"z": pa.int8(), "x": pa.decimal128(38, 0)})}.get(str(kind).partition("<")[0])
    wider = wider or (pa.list_(pa.int64()) if pa.types.is_list(kind) else pa.map_(pa.string(), pa.int64()))
    wanted = pa.schema({"a": wider})
    projection = project(wanted, ArrowFileSchema(pa.schema({"a": kind})), Reading(wanted))
    found = projection.apply(pa.table({"a": array}), 3)
    found.validate(full=True)
    assert found["a"].is_null().to_pylist() == [True, False, False]
    assert found["a"][1].as_py() == ({"z": None, "x": 1} if pa.types.is_struct(kind) else values)


def test_what_is_stored_as_wanted_is_not_copied():
    table = pa.table({"a": [1, 2], "s": pa.array([{"x": "a"}, None]), "l": pa.array([[1], None])})
    wanted = table.select(["l", "s"])
    projection = project(wanted.schema, ArrowFileSchema(table.schema), Reading(table.schema))
    assert projection.sources == (1, 2)
    found = projection.apply(table.select([1, 2]), 2)
    for name in ("l", "s"):
        before, after = (part[name].chunk(0).buffers() for part in (table, found))
        assert [b and b.address for b in before] == [b and b.address for b in after]


def test_ids_that_contradict_themselves_are_refused():
    a, b = (pa.field(name, pa.int64(), metadata=number(1)) for name in "ab")
    with pytest.raises(FileError, match="field id 1 twice"):
        project(pa.schema([a]), ArrowFileSchema(pa.schema([a, b])), Reading(pa.schema([a]), by_id=True))
    broken = pa.schema([a.with_metadata({FIELD_ID: "x"})])
    with pytest.raises(FileError, match="is no number"):
        project(pa.schema([a]), ArrowFileSchema(broken), Reading(pa.schema([a]), by_id=True))
    lists = [
        pa.field("l", pa.list_(pa.field("element", pa.int64(), metadata=number(i))), metadata=number(9)) for i in (1, 2)
    ]
    with pytest.raises(FileError, match="field id 1 instead of 2"):
        project(
            pa.schema([lists[1]]), ArrowFileSchema(pa.schema([lists[0]])), Reading(pa.schema([lists[1]]), by_id=True)
        )


def test_promotions_go_one_way():
    numbers = [kind for leaf in LEAVES for kind in leaf[:2] if pa.types.is_primitive(kind)]
    numbers = [kind for kind in numbers if not (pa.types.is_timestamp(kind) or pa.types.is_time(kind))]
    for have in numbers:
        for want in numbers:
            back = not have.equals(want) and promotion(have, want) and promotion(want, have)
            assert not back, f"{have} and {want} can't both hold all values of the other"


def test_a_missing_struct_with_required_fields_can_be_written(tmp_path):
    inner = pa.struct([pa.field("y", pa.string(), nullable=False), pa.field("z", pa.list_(pa.int8()), nullable=False)])
    wanted = pa.schema({"a": pa.int64(), "s": pa.struct([pa.field("t", inner, nullable=False)])})
    found = read(write(tmp_path, pa.table({"a": range(10)})), Reading(wanted))
    found.validate(full=True)
    assert pq.read_table(write(tmp_path, found)).to_pylist() == [{"a": a, "s": None} for a in range(10)]
