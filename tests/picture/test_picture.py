"""Files as rectangles: places keep the order of values, boxes touch what is read, and all of it stays bounded."""

import dataclasses
import math
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import picture_values as made
from zonal.picture.picture import MOST_AXES, MOST_BOXES, MOST_FILES, MOST_QUESTIONS, MOST_READS, picture_of, ranges_of
from zonal.picture.ticks import LAST_PLACE, _value_texts, axis_kind, ticks_of
from zonal.predicates.bound import All, Anything, Interval, Nulls, Ranges, Some
from zonal.skipping.files import FileIndex
from zonal.snapshot import UNKNOWN, Bounds
from zonal.study.drawing import without_values

WHOLE = pa.schema([("x", pa.int64()), ("y", pa.float64()), ("s", pa.string())])


def drawn(pairs, kind=None, questions=(), **more):
    schema = WHOLE if kind is None else pa.schema([("x", kind)])
    table = made.snapshot({"x": pairs}, schema, **more)
    return picture_of([("now", table)], ["x"], questions)


def asked(*texts, schema=WHOLE):
    return [(text, made.bound(text, schema), 1.0) for text in texts]


def spans(picture, column="x", version=0):
    drawing = picture.drawings[version]
    return list(zip(drawing.low[column].tolist(), drawing.high[column].tolist(), strict=True))


# --- Laws ------------------------------------------------------------------------------------------------------------

EXTREMES = [
    each * sign for each in (0.0, 5e-324, 1e-308, 1.7e308, 1.7976931348623157e308, math.inf) for sign in (1, -1)
]
VALUES = {
    "x": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20),
    "y": st.floats(allow_nan=False) | st.floats(0, 1, width=16) | st.sampled_from(EXTREMES),
    "s": st.text(max_size=3),
}


@st.composite
def columns(draw):
    name = draw(st.sampled_from(sorted(VALUES)))
    pair = st.tuples(VALUES[name], VALUES[name]).map(lambda both: tuple(sorted(both, key=sort_key)))
    return name, draw(st.lists(pair, min_size=1, max_size=30))


def sort_key(value):
    return value.encode() if isinstance(value, str) else value


@given(columns())
def test_places_keep_the_order_of_values(column):
    name, pairs = column
    picture = picture_of([("now", made.snapshot({name: pairs}, WHOLE))], [name])
    ends = [sort_key(value) for pair in pairs for value in pair]
    places = [place for span in spans(picture, name) for place in span]
    order = sorted(range(len(ends)), key=lambda at: ends[at])
    assert all(places[a] <= places[b] for a, b in pairwise(order))
    for a, b in pairwise(order):
        assert ends[a] != ends[b] or places[a] == places[b], "a value has one place"
    assert all(0 <= place <= LAST_PLACE for place, _ in picture.axes[0].ticks)


@given(columns(), st.data())
def test_a_box_touches_every_file_that_is_read(column, data):
    name, pairs = column
    low, high = sorted((sort_key(data.draw(VALUES[name])), sort_key(data.draw(VALUES[name]))))
    low_open, high_open = (data.draw(st.booleans()) and name != "x" and low != high for _ in range(2))
    bound = Ranges(name, (Interval(low, high, low_open, high_open),))
    table = made.snapshot({name: pairs}, WHOLE)
    question = picture_of([("now", table)], [name], [("q", bound, 1.0)]).questions[0]
    picture = picture_of([("now", table)], [name], [("q", bound, 1.0)])
    kept = FileIndex(table).prune(bound).kept
    assert question.files == (int(kept.sum()),)
    assert question.shares == (pytest.approx(kept.mean()),)
    assert (question.reads[0] == kept).all()
    for is_read, (start, end) in zip(kept.tolist(), spans(picture, name), strict=True):
        touched = any(start <= last and end >= first for first, last in question.boxes[name])
        assert touched or not is_read


LEAVES = st.builds(
    lambda column, low, width: Ranges(column, (Interval(low, low + width),)),
    st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 5),
) | st.sampled_from([Nulls("a"), Anything("?", ("b",)), Ranges("a", (Interval(1, 2),), nan=True)])  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda parts: st.lists(parts, max_size=3).map(tuple).flatmap(lambda all_: st.sampled_from([All(all_), Some(all_)])),
    max_leaves=8,
)


def matches(node, row):
    """Whether a row may match; parts that are not known may."""
    if isinstance(node, All):
        return all(matches(part, row) for part in node.parts)
    if isinstance(node, Some):
        return any(matches(part, row) for part in node.parts)
    if isinstance(node, Ranges):
        value = row[node.column]
        return any(interval.low <= value <= interval.high for interval in node.intervals)
    return True


@given(TREES, st.integers(0, 15), st.integers(0, 15))
def test_every_matching_row_lies_in_the_ranges(tree, a, b):
    row = {"a": a, "b": b}
    if matches(tree, row):
        for column, intervals in ranges_of(tree).items():
            assert any(each.low <= row[column] <= each.high for each in intervals)


# --- Places ----------------------------------------------------------------------------------------------------------


def test_numbers_lie_where_their_size_tells():
    picture = drawn([(0, 50), (25, 75), (75, 100)])
    assert spans(picture) == [(0, 32768), (16384, 49151), (49151, LAST_PLACE)]
    assert not picture.axes[0].even
    assert picture.axes[0].ticks[:2] == ((0, "0"), (13107, "20"))


def test_a_far_value_does_not_push_all_others_into_one_spot():
    picture = drawn([(number, number + 1) for number in range(50)] + [(2**62, 2**62)])
    assert picture.axes[0].even, "by rank"
    assert len({low for low, _ in spans(picture)}) == 51


def test_queries_between_infinite_bounds_have_a_place():
    infinite = float("inf")
    for pairs in ([(-infinite, infinite)], [(-infinite, 3.0), (5.0, infinite)]):
        picture = drawn(
            pairs, pa.float64(), asked("x = 1", "x BETWEEN 1 AND 9", schema=pa.schema([("x", pa.float64())]))
        )
        assert all(0 <= low <= high <= LAST_PLACE for each in picture.questions for low, high in each.boxes["x"])


def test_a_bound_that_is_not_known_lies_at_the_end():
    assert spans(drawn([(0, 10), (None, 5), (5, None), (None, None)])) == [
        (0, LAST_PLACE), (0, 32768), (32768, LAST_PLACE), (0, LAST_PLACE),
    ]  # fmt: skip


def test_a_file_of_nulls_has_no_place():
    low, high = spans(drawn([(0, 10), (None, None)], rows=10, nulls=[0, 10]))[1]
    assert low > high
    assert spans(drawn([(0, 10), (None, None)], rows=10, nulls=[0, UNKNOWN]))[1] == (0, LAST_PLACE)


def test_one_value_lies_in_the_middle():
    assert spans(drawn([("a", "a"), ("a", "a")], pa.string())) == [(32768, 32768)] * 2


def test_both_versions_share_their_axes():
    before, after = made.snapshot({"x": [(0, 10)]}, WHOLE), made.snapshot({"x": [(5, 40)]}, WHOLE, version=2)
    picture = picture_of([("before", before), ("after", after)], ["x"])
    assert spans(picture) == [(0, 16384)]
    assert spans(picture, version=1) == [(8192, LAST_PLACE)]
    assert [each.version for each in picture.drawings] == [1, 2]
    assert [depth.column for drawing in picture.drawings for depth in drawing.depths] == ["x", "x"]


def test_versions_whose_times_have_other_units_are_compared_in_the_first_ones():
    micros, nanos = (pa.schema([("x", pa.timestamp(unit))]) for unit in ("us", "ns"))
    first = made.snapshot({"x": [(0, 10**6), (10**6, 2 * 10**6)]}, micros)
    second = made.snapshot({"x": [(0, 10**9), (10**9, 2 * 10**9)]}, nanos)
    asks = [("early", made.bound("x < TIMESTAMP '1970-01-01 00:00:01'", micros), 1.0)]
    picture = picture_of([("before", first), ("after", second)], ["x"], asks)
    assert spans(picture) == spans(picture, version=1)
    assert picture.questions[0].files == (1, 1)


def test_what_a_file_does_not_tell_its_partition_does():
    table = made.snapshot({"x": [(None, None), (3, 4)]}, WHOLE)
    outer = Bounds(pa.array([0, 0]), pa.array([10, 10]), np.zeros(2, np.int64), np.zeros(2, np.int64))
    files = dataclasses.replace(table.files, partition_bounds={"x": outer, "y": outer})
    picture = picture_of([("now", dataclasses.replace(table, files=files))], ["x", "y"])
    assert spans(picture) == [(0, LAST_PLACE), (19660, 26214)]
    assert spans(picture, "y") == [(0, LAST_PLACE)] * 2


def test_columns_without_bounds_are_left_out_and_others_limited():
    many = pa.schema([(f"c{number}", pa.int64()) for number in range(20)])
    table = made.snapshot({name: [(0, 1)] for name in many.names[:18]} | {"c19": [(None, None)]}, many)
    picture = picture_of([("now", table)], ["c19", "c18", "nowhere", *many.names, "c0"])
    assert [axis.column for axis in picture.axes] == list(many.names[:MOST_AXES])


def test_nothing_to_draw_is_drawn():
    assert picture_of([("now", made.snapshot({"x": []}, WHOLE))], ["x"]).axes == ()


# --- Limits ----------------------------------------------------------------------------------------------------------


def test_of_many_files_some_stand_for_all():
    count = MOST_FILES + 2000
    picture = drawn([(number, number) for number in range(count)], questions=asked("x < 100"))
    drawing, question = picture.drawings[0], picture.questions[0]
    assert drawing.files == count
    assert len(drawing.drawn) == len(drawing.low["x"]) == len(question.reads[0]) == MOST_FILES
    assert (np.diff(drawing.drawn) > 0).all()
    assert question.files == (100,), "numbers are of all files"
    assert (question.reads[0] == (drawing.drawn < 100)).all()
    again = drawn([(number, number) for number in range(count)])
    assert (again.drawings[0].drawn == drawing.drawn).all(), "the same ones every time"


def test_questions_are_limited():
    bound = made.bound("x = 1", WHOLE)
    picture = drawn([(0, 1)], questions=[("q", bound, 1.0)] * (MOST_QUESTIONS + 1))
    assert len(picture.questions) == MOST_QUESTIONS
    assert sum(bool(question.reads) for question in picture.questions) == MOST_READS
    assert {question.files for question in picture.questions} == {(1,)}


def test_many_values_become_few_boxes():
    values = ", ".join(str(number * 1000) for number in range(500))
    question = drawn([(0, 10**6)], questions=asked(f"x IN ({values})")).questions[0]
    assert len(question.boxes["x"]) == MOST_BOXES
    assert question.boxes["x"][0][0] == 0
    assert all(low <= high for low, high in question.boxes["x"])


def test_columns_that_a_query_does_not_bind_have_no_box():
    table = made.snapshot({"x": [(0, 10)], "y": [(0.0, 1.0)]}, WHOLE)
    asks = asked("x = 5", "x = 5 OR y = 0.5", "x = 3 OR x > 8", "x > 100", "y IS NULL")
    boxes = [question.boxes for question in picture_of([("now", table)], ["x", "y"], asks).questions]
    assert boxes[0] == {"x": ((32768, 32768),)}
    assert boxes[1] == {}
    assert [len(found) for found in boxes[2].values()] == [2]
    assert boxes[3] == {"x": ()}, "beyond the drawing"
    assert boxes[4] == {}


# --- Ticks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "low", "high", "first"),
    [
        (pa.int64(), 0, 1_000_000_000, "0"),
        (pa.float64(), 0.0, 1.0, "0"),
        (pa.decimal128(9, 2), Decimal("0.00"), Decimal("10.00"), "0"),
        (pa.date32(), date(2026, 1, 1), date(2026, 12, 31), "2026-01"),
        (pa.date32(), date(1990, 1, 1), date(2026, 12, 31), "1990"),
        (pa.timestamp("us"), datetime(2026, 1, 1), datetime(2026, 1, 1, 6), "01-01 00:00"),
        (pa.timestamp("ms", "UTC"), datetime(2026, 1, 1, tzinfo=timezone.utc),
         datetime(2026, 1, 4, tzinfo=timezone.utc), "2026-01-01"),
        (pa.bool_(), False, True, "false"),
        (pa.string(), "a", "z", "a"),
    ],
)  # fmt: skip
def test_ticks_are_round_and_on_the_axis(kind, low, high, first):
    schema = pa.schema([("x", kind)])
    table = made.snapshot({"x": [(0, 0)]}, pa.schema([("x", pa.int64())]))
    ends = [pa.array([value], kind) for value in (low, high)]
    ends = [end.cast(pa.large_binary()) if pa.types.is_string(kind) else end for end in ends]
    none = np.zeros(1, np.int64)
    files = dataclasses.replace(table.files, bounds={"x": Bounds(*ends, none, none)})
    axis = picture_of([("now", dataclasses.replace(table, schema=schema, files=files))], ["x"]).axes[0]
    assert axis.kind == axis_kind(kind)
    assert axis.ticks[0][1] == first
    assert 2 <= len(axis.ticks) <= 8
    places = [place for place, _ in axis.ticks]
    assert places == sorted(places)


def value_text(value, kind):
    return _value_texts([value], kind)[0]


def test_values_are_written_in_their_own_way():
    assert value_text(b"\xff\x00", pa.binary()) == "ff00"
    assert value_text(bytes(range(16)), pa.uuid()) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert value_text(3_600_000_000_000, pa.time64("us")) == "01:00:00"
    assert value_text(2**62, pa.timestamp("us")) == f"{2**62:,}", "beyond the calendar"
    assert len(value_text(b"x" * 500, pa.string())) == 24
    assert value_text(2**64 - 1, pa.uint64()) == "18,446,744,073,709,551,615", "numbers are whole"


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_any_numbers_have_ticks(values):
    found = np.unique(np.array(values))
    places = np.linspace(0, LAST_PLACE, len(found)).astype(np.uint16)
    for is_even in (True, False):
        ticks, _ = ticks_of(found, places, pa.float64(), is_even=is_even)
        assert 1 <= len(ticks) <= 11
        assert all(-1 <= place <= LAST_PLACE + 1 for place, _ in ticks)


def ticked(low, high, kind, files=10):
    """The labels of a column whose files lie between two values beside each other."""
    edges = [low + (high - low) * at // files for at in range(files + 1)] if isinstance(low, int) else None
    edges = edges or [low + (high - low) * at / files for at in range(files + 1)]
    schema = pa.schema([("x", kind)])
    return picture_of([("now", made.snapshot({"x": list(pairwise(edges))}, schema))], ["x"]).axes[0].ticks


@pytest.mark.parametrize(
    ("low", "high", "kind", "wanted"),
    [
        (500_000_000, 500_001_000, pa.int64(), ["500,000,000", "500,000,200"]),
        (1_234_567_000, 1_234_568_000, pa.int64(), ["1,234,567,000", "1,234,567,200"]),
        (0, 3_000_000_000, pa.int64(), ["0", "500M", "1G", "1.5G"]),
        (1_700_000_000_000, 1_700_003_600_000, pa.int64(), ["1,700,000,000,000", "1,700,001,000,000"]),
        (1_000_000.0, 1_000_001.0, pa.float64(), ["1,000,000", "1,000,000.2"]),
        (273.15, 273.151, pa.float64(), ["273.15", "273.1502"]),
        (1.0, 1.0 + 2e-15, pa.float64(), ["1.0", "1.0000000000000004"]),
        (1_700_000_000_000_000, 1_700_000_000_001_000, pa.timestamp("us"), ["11-14 22:13:20.0000", "22:13:20.0002"]),
        (1_700_000_000_000, 1_700_000_001_000, pa.timestamp("ms"), ["11-14 22:13:20.0", "22:13:20.2"]),
        (1_700_000_000_000_000_000, 1_700_000_000_000_100_000, pa.timestamp("ns"),
         ["11-14 22:13:20.00000", "22:13:20.00002"]),
        (1_700_000_000, 1_700_200_000, pa.timestamp("s"), ["11-15 00:00", "11-15 12:00", "11-16 00:00", "11-16 12:00"]),
    ],
)  # fmt: skip
def test_neighbors_are_told_apart(low, high, kind, wanted):
    texts = [text for _, text in ticked(low, high, kind)]
    assert texts[: len(wanted)] == wanted
    assert len(set(texts)) == len(texts) >= 4


def test_texts_of_one_beginning_are_shown_by_what_differs():
    pairs = [(f"some/rather/long/path/of/{at:04d}", f"some/rather/long/path/of/{at + 1:04d}") for at in range(20)]
    texts = [text for _, text in drawn(pairs, pa.string()).axes[0].ticks]
    assert texts == ["…/0000", "…/0005", "…/0010", "…/0015", "…/0020"]
    alike = ["x" * 60 + end for end in "abc"]
    assert [text for _, text in drawn([(each, each) for each in alike], pa.string()).axes[0].ticks] == [
        "…a",
        "…b",
        "…c",
    ]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(1e-12, 1e12), st.sampled_from([1, 2, 7, 40]))
def test_a_label_stands_where_its_number_lies(low, width, files):
    high = low + width
    places = ticked(low, high, pa.float64(), files)
    assert len({text for _, text in places}) == len(places)
    assert len(places) > 1 or low == high or not math.isfinite(high)
    if math.isfinite(high) and high - low > 1000 * math.ulp(max(abs(low), abs(high))):
        for place, text in places:
            scale = {"M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1)
            value = float(text.rstrip("MGT").replace(",", "")) * scale
            assert (value - low) / (high - low) * LAST_PLACE == pytest.approx(place, abs=70), "within a thousandth"


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(10**18, 10**18 + 100), min_size=2, max_size=9, unique=True),
       st.sampled_from([pa.timestamp("us"), pa.timestamp("ns"), pa.int64(), pa.timestamp("s"), pa.decimal128(30, 7)]),
       st.booleans())  # fmt: skip
def test_values_that_differ_have_labels_that_differ(values, kind, is_even):
    found = np.array(sorted(values), object if pa.types.is_decimal(kind) else np.int64)
    places = np.linspace(0, LAST_PLACE, len(found)).astype(np.uint16)
    ticks, _ = ticks_of(found, places, kind, is_even=is_even)
    assert len({text for _, text in ticks}) == len({place for place, _ in ticks}) == len(ticks) >= 2


@given(st.text(min_size=0, max_size=40), st.lists(st.text("ab/", max_size=4), min_size=2, max_size=8, unique=True))
def test_texts_that_differ_have_labels_that_differ(prefix, ends):
    pairs = [(prefix + end, prefix + end) for end in ends]
    axis = drawn(pairs, pa.string()).axes[0]
    texts = [text for _, text in axis.ticks]
    assert len(set(texts)) == len(texts) == min(5, len(ends))


@pytest.mark.parametrize("pair", [(0.0, 5e-324), (-5e-324, 5e-324), (-1.7e308, 1.7e308), (-math.inf, math.inf)])
def test_extreme_numbers_are_drawn(pair):
    schema = pa.schema([("x", pa.float64())])
    picture = drawn([pair, pair], pa.float64(), asked("x = 0", "x < 1", schema=schema))
    assert len(picture.axes[0].ticks) >= 2
    assert all(0 <= low <= high <= LAST_PLACE for each in picture.questions for low, high in each.boxes["x"])


def test_values_of_files_are_at_no_axis_of_a_hidden_picture():
    """Files of a tree begin where queries cut: only round numbers may stand there."""
    round_ones = drawn([(0, 40), (41, 100)])
    assert round_ones.axes[0].has_round_ticks
    assert without_values(round_ones).axes[0].ticks == round_ones.axes[0].ticks
    for pairs, kind in (
        ([(13714, 13714)], None),
        ([(1.1, 1.1000000000000003)], pa.float64()),
        ([("a", "b")], pa.string()),
    ):
        picture = drawn(pairs, kind, asked("x = 1") if kind is None else ())
        hidden = without_values(picture)
        shown = "".join(text for _, text in hidden.axes[0].ticks)
        assert "13714" not in shown.replace(",", "")
        assert hidden.axes[0].has_round_ticks or not shown
        assert all(not question.boxes for question in hidden.questions)
