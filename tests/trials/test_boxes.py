"""Queries as boxes: the exact index judges `meets` on generated predicates, DuckDB judges it on generated rows."""

import math
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.arrow_values import KINDS, arrays, order_key
from support.predicates import PREDICATES, SCHEMA, VALUES, sql
from zonal.errors import ColumnError
from zonal.predicates import conjunctions
from zonal.predicates.bind import bind
from zonal.predicates.bound import Nulls, leaves_of
from zonal.predicates.expressions import And, Column, Compare, Constant, In, IsNull, Or, StartsWith, Unknown
from zonal.skipping.index import Index
from zonal.snapshot import Bounds
from zonal.sql.where import parse_where
from zonal.trials.boxes import boxes_of, code, literal_columns, meets, units_of

COLUMNS = list(VALUES)


def number(value):
    """Another number for NaN: to leave it out, hypothesis would have to draw too often."""
    return 0.5 if isinstance(value, float) and math.isnan(value) else value


@st.composite
def rows_in_units(draw, *, nan):
    """Rows of every type, cut into units of one to four rows."""
    fields = {name: st.none() | (values if nan else values.map(number)) for name, values in VALUES.items()}
    return draw(st.lists(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=4), min_size=1, max_size=4))


def coded_units(units):
    data = pa.Table.from_pylist([row for unit in units for row in unit], SCHEMA)
    starts = np.cumsum([0, *(len(unit) for unit in units[:-1])])
    coded = code(data, COLUMNS)
    return data, coded, units_of(coded, np.arange(len(data)), starts, widen=False)


def exact_index(units):
    bounds = {}
    for name in COLUMNS:
        held = [[v.encode() if name == "s" else v for row in unit if (v := row[name]) is not None] for unit in units]
        kind = pa.large_binary() if name == "s" else SCHEMA.field(name).type
        bounds[name] = Bounds(
            pa.array([min(values, default=None) for values in held], kind),
            pa.array([max(values, default=None) for values in held], kind),
            np.array([len(unit) - len(values) for unit, values in zip(units, held, strict=True)]),
            np.zeros(len(units), np.int64),
        )
    return Index(np.array([len(unit) for unit in units]), bounds)


def kept_by_both(units, predicates):
    bounds = [bind(predicate, SCHEMA) for predicate in predicates]
    _, coded, boxed = coded_units(units)
    index = exact_index(units)
    exact = np.stack([index.might_match(bound) for bound in bounds], axis=1)
    return bounds, exact, meets(boxed, boxes_of(bounds, coded))


@given(rows_in_units(nan=False), st.lists(PREDICATES, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_boxes_keep_the_units_that_the_index_keeps(units, predicates):
    with mock.patch.object(conjunctions, "_reduced", wraps=conjunctions._reduced) as reduced:
        bounds, exact, kept = kept_by_both(units, predicates)
    assert not (exact & ~kept).any(), "a unit that the index keeps is kept"
    joined = any(len(boxes) > most for (boxes, most), _ in reduced.call_args_list)
    for query, bound in enumerate(bounds):
        if not joined and not any(isinstance(node, Nulls) for node in leaves_of(bound)):
            assert (exact[:, query] == kept[:, query]).all(), "and no other one"


@given(rows_in_units(nan=False), st.lists(PREDICATES, min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_joined_boxes_keep_more_and_never_less(units, predicates):
    with mock.patch.object(conjunctions, "MOST_BOXES", 3):
        _, exact, kept = kept_by_both(units, predicates)
    assert not (exact & ~kept).any()


@given(rows_in_units(nan=True), PREDICATES)
@settings(max_examples=75, deadline=None)
def test_a_unit_with_a_matching_row_meets_the_query(units, predicate):
    data, coded, boxed = coded_units(units)
    told = data.append_column("unit", pa.array([at for at, unit in enumerate(units) for _ in unit], pa.int64()))
    told = told.set_column(told.column_names.index("tz"), "tz", told["tz"].cast(pa.timestamp("us")))
    matching = {unit for (unit,) in duckdb.sql(f"SELECT DISTINCT unit FROM told WHERE {sql(predicate)}").fetchall()}
    kept = meets(boxed, boxes_of([bind(predicate, SCHEMA)], coded))
    assert matching <= set(np.flatnonzero(kept[:, 0]).tolist()), sql(predicate)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_codes_are_the_places_of_values_in_their_order(data):
    column = data.draw(arrays(data.draw(KINDS)))
    coded = code(pa.table({"x": column}), ["x"])
    values, codes = column.to_pylist(), coded.codes[:, 0].tolist()
    distinct = sorted({order_key(value) for value in values if value is not None})
    assert codes == [-1 if value is None else distinct.index(order_key(value)) for value in values]
    assert len(coded.points[0]) == len(distinct)
    assert coded.nulls == (None in values,)


def table(**columns):
    return pa.table(columns)


def met(data, starts, *predicates, **options):
    coded = code(data, data.column_names)
    units = units_of(coded, np.arange(len(data)), np.array(starts), **{"widen": False, **options})
    kept = meets(units, boxes_of([bind(predicate, data.schema) for predicate in predicates], coded))
    return [np.flatnonzero(kept[:, query]).tolist() for query in range(kept.shape[1])]


NUMBERS = table(x=pa.array([0, 9, 10, 19, 20, 20, 30, 39, None, None], pa.int64()))
STARTS = [0, 2, 4, 6, 8]
X = Column("x")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Compare(X, "=", 15), [1]),
        (Compare(X, "=", 25), []),
        (Compare(X, ">", 19), [2, 3]),
        (Compare(X, "<>", 20), [0, 1, 3]),
        (In(X, (5, 35)), [0, 3]),
        (In(X, (*range(-1000, 0), 22, 31)), [3]),
        (In(X, tuple(range(-200, 400, 2))), [0, 1, 2, 3]),
        (Or((Compare(X, "<", 1), IsNull(X))), [0, 4]),
        (IsNull(X), [4]),
        (IsNull(X, negated=True), [0, 1, 2, 3]),
        (And((Compare(X, ">", 5), IsNull(X))), [4]),
        (Constant(False), []),
        (Constant(True), [0, 1, 2, 3, 4]),
        (Unknown("?", (X,)), [0, 1, 2, 3, 4]),
    ],
)
def test_units_are_told_apart_exactly(predicate, expected):
    assert met(NUMBERS, STARTS, predicate) == [expected]


def test_queries_without_boxes_stand_between_others():
    assert met(NUMBERS, STARTS, Constant(False), Compare(X, "=", 15), Constant(False)) == [[], [1], []]


def test_a_gap_is_met_by_units_that_span_it():
    between = And((Compare(X, ">", 3), Compare(X, "<", 6)))
    assert met(table(x=[1, 9, 1, 2, 8, 9]), [0, 2, 4], Compare(X, "=", 5), between) == [[0], [0]]


def test_columns_that_are_not_coded_set_no_condition():
    data = table(x=[1, 2], y=[1, 2])
    coded = code(data, ["x"])
    units = units_of(coded, np.arange(2), np.array([0, 1]), widen=False)
    bound = bind(And((Compare(X, "=", 1), Compare(Column("y"), "=", 2))), data.schema)
    assert meets(units, boxes_of([bound], coded)).tolist() == [[True], [False]]


def test_many_values_are_joined_over_their_smallest_gaps():
    data = table(x=list(range(1000)))
    values = (*range(0, 400, 4), 900)
    boxes = boxes_of([bind(In(X, values), data.schema)], code(data, ["x"]))
    assert len(boxes.query) == conjunctions.MOST_BOXES
    assert (boxes.low[-1, 0], boxes.high[-1, 0]) == (900, 900), "the large gap stays"


def test_neighboring_values_make_one_box():
    data = table(x=[1, 5, 7, 9])
    boxes = boxes_of([bind(In(X, (1, 5, 7)), data.schema)], code(data, ["x"]))
    assert boxes.low.tolist() == [[0]]
    assert boxes.high.tolist() == [[2]]


def test_products_of_lists_stay_bounded():
    data = table(x=list(range(1000)), y=list(range(1000)), z=list(range(1000)))
    lists = And(tuple(In(Column(name), tuple(range(0, 1000, 9))) for name in "xyz"))
    deep = lists
    for depth in range(3000):
        deep = (Or if depth % 2 else And)((deep, Compare(X, ">", depth % 7)))
    boxes = boxes_of([bind(lists, data.schema), bind(deep, data.schema)], code(data, ["x", "y", "z"]))
    assert np.bincount(boxes.query).max() <= conjunctions.MOST_BOXES


def test_borders_are_the_literals_at_which_a_cut_parts_the_query():
    data = table(x=[1, 5, 9], f=[1.0, 5.0, 9.0], s=["a", "m", "z"])
    predicate = And(
        (
            Compare(X, "<=", 6),
            Compare(Column("f"), ">", 5.0),
            StartsWith(Column("s"), "n"),
        )
    )
    x, f, s = boxes_of([bind(predicate, data.schema)], code(data, ["x", "f", "s"])).borders
    assert x == {2: 7}
    assert f == {2: math.nextafter(5.0, math.inf)}
    assert s == {2: b"n"}


def test_boxes_of_a_sample_are_widened_but_not_over_their_limits():
    coded = code(table(x=list(range(31))), ["x"])
    order, starts = np.arange(31), np.array([0, 10, 21])

    def middle(**options):
        units = units_of(coded, order, starts, **options)
        return units.low[1, 0], units.high[1, 0]

    assert middle() == (9, 21), "ten gaps between eleven rows: one more on each side"
    assert middle(widen=0.5) == (9.5, 20.5)
    assert middle(widen=False) == (10, 20)
    limits = np.full((3, 1), 9.75, np.float32), np.full((3, 1), 20.25, np.float32)
    assert middle(clip_low=limits[0], clip_high=limits[1]) == (9.75, 20.25)
    whole = units_of(coded, order, starts)
    assert (whole.low[0, 0], whole.high[2, 0]) == (0, 30), "beyond all values there is nothing to meet"


def test_memory_stays_bounded_where_many_units_meet_many_boxes(monkeypatch):
    data = table(x=list(range(500)))
    coded = code(data, ["x"])
    units = units_of(coded, np.arange(500), np.arange(500), widen=False)
    boxes = boxes_of([bind(Compare(X, "=", value), data.schema) for value in range(500)], coded)
    whole = meets(units, boxes)
    monkeypatch.setattr("zonal.trials.boxes._CELLS", 1200)
    assert (meets(units, boxes) == whole).all()
    assert (whole == np.eye(500, dtype=bool)).all()


def test_a_column_without_an_order_is_explained():
    with pytest.raises(ColumnError, match=r"Column 'l' has values of type list.*, which have no order"):
        code(table(l=[[1], [2]]), ["l"])


def test_nothing_is_kept_of_nothing():
    empty = table(x=pa.array([], pa.int64()))
    coded = code(empty, ["x"])
    units = units_of(coded, np.arange(0), np.zeros(0, np.int64))
    assert meets(units, boxes_of([bind(Compare(X, "=", 1), empty.schema)], coded)).shape == (0, 1)


def test_columns_are_named_by_how_often_they_are_asked_for():
    schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    asked = Compare(Column("a"), "=", 1), Compare(Column("b"), "=", 1), IsNull(Column("b"))
    bounds = [bind(predicate, schema) for predicate in (*asked, Unknown("?", (Column("a"),)))]
    assert literal_columns(bounds) == ["b", "a"]
    assert literal_columns(bounds, [5, 1, 1, 1]) == ["a", "b"]


def test_a_literal_beyond_the_sample_but_not_beyond_the_table_meets_the_last_units():
    table = pa.table({"x": [10, 20, 30, 40]})
    asked = [bind(parse_where(text), table.schema) for text in ("x = 5", "x = 45", "x = 1", "x = 99", "x <= 5")]
    order, starts = np.arange(4), np.array([0, 2])
    plain, known = code(table, ["x"]), code(table, ["x"], {"x": (3, 50)})
    assert not meets(units_of(plain, order, starts), boxes_of(asked, plain)).any()
    found = meets(units_of(known, order, starts), boxes_of(asked, known))
    assert found.tolist() == [[True, False, False, False, True], [False, True, False, False, False]]
