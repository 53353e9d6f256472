"""The law of skipping, with DuckDB as the judge: a unit with a matching row is kept, whatever its statistics lack."""

import datetime as dt
import math
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.predicates import PREDICATES, SCHEMA, UTC, VALUES, sql
from zonal.errors import PredicateError
from zonal.predicates.bind import bind
from zonal.predicates.expressions import And, Call, Column, Compare, Constant, In, IsNull, Or, StartsWith, Unknown
from zonal.skipping.index import Index
from zonal.snapshot import UNKNOWN, Bounds


@st.composite
def unit_bounds(draw, name, values):
    """The true statistics of one unit, without those that a writer leaves out."""
    present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    nans = sum(isinstance(v, float) and math.isnan(v) for v in values)
    low, high = (min(present), max(present)) if present else (None, None)
    if name == "s" and present:
        keys = sorted(v.encode() for v in present)
        low, high = keys[0], keys[-1]
        if draw(st.booleans()):
            size = draw(st.integers(0, 4))
            low = low[:size]
            cut = high[:size].rstrip(b"\xff")
            high = high if len(high) <= size else (cut[:-1] + bytes([cut[-1] + 1]) if cut else None)
    has_nans = name in ("f", "g")
    return (
        None if draw(st.integers(0, 5)) == 0 else low,
        None if draw(st.integers(0, 5)) == 0 else high,
        UNKNOWN if draw(st.integers(0, 5)) == 0 else sum(v is None for v in values),
        UNKNOWN if has_nans and draw(st.booleans()) else nans,
    )


@st.composite
def units(draw):
    """Several units of rows, and an index over what their metadata tells."""
    rows = draw(
        st.lists(
            st.lists(st.fixed_dictionaries({n: st.none() | v for n, v in VALUES.items()}), max_size=4),
            min_size=1,
            max_size=4,
        )
    )
    bounds = {}
    for name in SCHEMA.names:
        if draw(st.integers(0, 9)) == 0:
            continue
        told = [draw(unit_bounds(name, [row[name] for row in unit])) for unit in rows]
        kind = pa.large_binary() if name == "s" else SCHEMA.field(name).type
        low, high, nulls, nans = zip(*told, strict=True)
        bounds[name] = Bounds(pa.array(low, kind), pa.array(high, kind), np.array(nulls), np.array(nans))
    counts = np.array([len(unit) if draw(st.integers(0, 9)) else UNKNOWN for unit in rows])
    return rows, Index(counts, bounds)


@given(units(), PREDICATES)
@settings(max_examples=400)
def test_a_unit_with_a_matching_row_is_kept(made, predicate):
    rows, index = made
    flat = [{**row, "unit": number} for number, unit in enumerate(rows) for row in unit]
    told = pa.Table.from_pylist(flat, SCHEMA.append(pa.field("unit", pa.int64())))
    # The DuckDB wheel has no time zones: in a session in UTC, moments are clock times.
    told = told.set_column(told.column_names.index("tz"), "tz", told["tz"].cast(pa.timestamp("us")))
    skipped = index.skip(bind(predicate, SCHEMA))
    query = f"SELECT DISTINCT unit FROM told WHERE {sql(predicate)}"
    matching = {unit for (unit,) in duckdb.sql(query).fetchall()}
    kept = set(np.flatnonzero(skipped.kept).tolist())
    assert matching <= kept, f"skipped a match of {sql(predicate)}"
    excluded = np.zeros(len(rows), bool)
    for mask in skipped.by.values():
        assert not (excluded & mask).any(), "a unit is skipped by one column"
        excluded |= mask
    assert (excluded == ~skipped.kept).all(), "every skipped unit names its column"


def index_of(**columns):
    """Units of three rows without nulls, from lists of (lower, upper)."""
    bounds = {}
    for name, pairs in columns.items():
        kind = pa.large_binary() if name == "s" else SCHEMA.field(name).type
        low, high = zip(*pairs, strict=True)
        zeros = np.zeros(len(pairs), np.int64)
        bounds[name] = Bounds(pa.array(low, kind), pa.array(high, kind), zeros, zeros)
    return Index(np.full(len(pairs), 3), bounds)


def kept(index, predicate, **options):
    return np.flatnonzero(index.skip(bind(predicate, SCHEMA, **options)).kept).tolist()


NUMBERED = index_of(i=[(0, 9), (10, 19), (20, 20), (30, 39)])


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Compare(Column("i"), "=", 15), [1]),
        (Compare(Column("i"), "=", Decimal("15.5")), []),
        (Compare(Column("i"), "<", 10), [0]),
        (Compare(Column("i"), "<=", 10), [0, 1]),
        (Compare(Column("i"), ">", 20), [3]),
        (Compare(Column("i"), ">=", 20), [2, 3]),
        (Compare(Column("i"), "<>", 20), [0, 1, 3]),
        (Compare(Column("i"), "=", 10**30), []),
        (Compare(Column("i"), "<", 10**30), [0, 1, 2, 3]),
        (In(Column("i"), (5, 35)), [0, 3]),
        (In(Column("i"), tuple(range(10, 21))), [1, 2]),
        (In(Column("i"), tuple(range(-1000, 0))), []),
        (In(Column("i"), (*range(-1000, 0), 22, 31)), [3]),
        (In(Column("i"), (20, 21), negated=True), [0, 1, 3]),
        (In(Column("i"), (19, 20, 21), negated=True), [0, 1, 3]),
        (In(Column("i"), ()), []),
        (In(Column("i"), (), negated=True), [0, 1, 2, 3]),
        (And((Compare(Column("i"), ">", 9), Compare(Column("i"), "<", 20))), [1]),
        (Or((Compare(Column("i"), "<", 1), Compare(Column("i"), ">", 38))), [0, 3]),
        (And((Compare(Column("I"), "=", 5), Unknown("?"))), [0]),
        (IsNull(Column("i")), []),
        (IsNull(Column("i"), negated=True), [0, 1, 2, 3]),
        (Constant(False), []),
        (And(()), [0, 1, 2, 3]),
        (Or(()), []),
    ],
)  # fmt: skip
def test_whole_numbers_are_skipped_exactly(predicate, expected):
    assert kept(NUMBERED, predicate) == expected


def test_times_are_skipped_exactly():
    months = [(dt.datetime(2024, m, 1), dt.datetime(2024, m, 28, 23)) for m in (1, 2, 3)]
    index = index_of(ts=months, tz=[(a.replace(tzinfo=UTC), b.replace(tzinfo=UTC)) for a, b in months])
    for name in ("ts", "tz"):
        column = Column(name)
        assert kept(index, Compare(column, "=", "2024-02-05 12:00:00")) == [1]
        assert kept(index, Compare(column, ">=", dt.date(2024, 2, 29))) == [2]
        assert kept(index, Compare(Call("date", column), "=", dt.date(2024, 1, 28))) == [0]
        assert kept(index, Compare(Call("date_trunc", column, "month"), ">", dt.date(2024, 2, 1))) == [2]
        assert kept(index, Compare(Call("date_trunc", column, "month"), "=", dt.date(2024, 2, 2))) == []
        assert kept(index, Compare(Call("year", column), "<", 2024)) == []
        assert kept(index, Compare(Call("year", column), "=", 2024)) == [0, 1, 2]
        assert kept(index, Compare(Call("cast", column, "date"), "<=", "2024-01-31")) == [0]
    assert kept(index, Compare(Column("tz"), "=", "2024-02-01 00:30:00"), timezone="Europe/Berlin") == []
    assert kept(index, Compare(Column("tz"), "=", "2024-02-01 00:30:00+00:00"), timezone="Europe/Berlin") == [1]


def test_text_is_skipped_by_prefix():
    index = index_of(s=[(b"a", b"azz"), (b"b", b"bzz"), (b"ba", b"ba")])
    assert kept(index, StartsWith(Column("s"), "b")) == [1, 2]
    assert kept(index, StartsWith(Column("s"), "az")) == [0]
    assert kept(index, StartsWith(Column("s"), "ba", negated=True)) == [0, 1]
    assert kept(index, StartsWith(Column("s"), "")) == [0, 1, 2]
    assert kept(index, Compare(Column("s"), "<>", "ba")) == [0, 1]


def test_nan_keeps_what_is_greater():
    zero = np.zeros(3, np.int64)
    nans = np.array([0, UNKNOWN, 2])
    index = Index(np.full(3, 5), {"f": Bounds(pa.array([0.0] * 3), pa.array([1.0] * 3), zero, nans)})
    assert kept(index, Compare(Column("f"), ">", 5.0)) == [1, 2]
    assert kept(index, Compare(Column("f"), "<", -5.0)) == []
    assert kept(index, And((Compare(Column("f"), ">", 5.0), Compare(Column("f"), "<", 9.0)))) == []
    assert kept(index, Compare(Column("f"), "=", math.nan)) == [1, 2]


@pytest.mark.parametrize("op", ["=", "<", "<=", ">", ">=", "<>"])
def test_a_nan_that_is_cast_to_a_whole_number_is_kept(op):
    """Spark without ANSI mode makes it 0."""
    zero = np.zeros(2, np.int64)
    bounds = Bounds(pa.array([50.0, 50.0]), pa.array([60.0, 60.0]), zero, np.array([UNKNOWN, 0]))
    index = Index(np.full(2, 5), {"f": bounds})
    literal = {">": -5, ">=": -5, "<>": 55}.get(op, 0)
    for kind in ("int32", "int64"):
        found = kept(index, Compare(Call("cast", Column("f"), kind), op, literal))
        assert 0 in found
        assert (1 in found) == (op in (">", ">=", "<>"))


def test_only_nulls_match_no_comparison():
    bounds = Bounds(pa.nulls(2, pa.int32()), pa.nulls(2, pa.int32()), np.array([5, UNKNOWN]), np.zeros(2, np.int64))
    index = Index(np.array([5, 5]), {"i": bounds})
    assert kept(index, Compare(Column("i"), "=", 1)) == [1]
    assert kept(index, IsNull(Column("i"))) == [0, 1]
    assert kept(index, In(Column("i"), (), negated=True)) == [0, 1], "nulls are not in an empty list"
    assert kept(index, In(Column("i"), ())) == []
    assert kept(index, IsNull(Column("i"), negated=True)) == [1]


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (Compare(Column("ts"), ">", "banana"), "'banana' can't be compared with column 'ts', which has type timestamp"),
        (Compare(Column("i"), "=", "x"), "'x' can't be compared with column 'i'"),
        (Compare(Column("day"), "=", 5), "'5' can't be compared with column 'day'"),
        (Compare(Column("b"), "=", 1.5), "can't be compared with column 'b'"),
        (Compare(Column("f"), "=", "sNaN"), "'sNaN' can't be compared with column 'f'"),
        (Compare(Column("tss"), "=", 1), "Unknown column 'tss'. Did you mean 'ts'"),
    ],
)
def test_what_does_not_fit_is_explained(predicate, message):
    with pytest.raises(PredicateError, match=message):
        bind(predicate, SCHEMA)


def test_an_unknown_zone_is_explained():
    with pytest.raises(PredicateError, match="Unknown time zone 'Mars/Olympus'"):
        bind(Constant(True), SCHEMA, timezone="Mars/Olympus")


@pytest.mark.parametrize(
    ("dialect", "quoted", "name"), [("postgres", False, "a"), ("snowflake", False, "A"), ("postgres", True, "A")]
)
def test_case_follows_the_dialect(dialect, quoted, name):
    schema = pa.schema({"a": pa.int64(), "A": pa.int64()})
    assert bind(Compare(Column("A", quoted), "=", 1), schema, dialect=dialect).column == name


def test_deep_predicates_need_no_deep_stack():
    predicate = Compare(Column("i"), "=", 15)
    for depth in range(5000):
        predicate = (And if depth % 2 else Or)((predicate, Constant(bool(depth % 2))))
    assert kept(NUMBERED, predicate) == [1]
