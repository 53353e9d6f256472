"""Layouts as text, as JSON and as values; bad ones are refused with advice."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.errors import LayoutError
from zonal.layouts.layout import CURVES, KINDS, MAX_TREE_TEXT, Layout, most_bits

NAMES = st.one_of(st.text(min_size=1, max_size=8), st.sampled_from(["a.b", "x y", 'q"q', "`", "bits", "a=b", "[", ")"]))


@st.composite
def layouts(draw):
    kind = draw(st.sampled_from(KINDS))
    columns = tuple(draw(st.lists(NAMES, min_size=1, max_size=32 if kind == "tree" else 8, unique=True)))
    most = 16 if kind == "tree" else most_bits(len(columns))
    return Layout(
        kind,
        columns,
        bits=draw(st.none() | st.integers(4, most)),
        target_file_bytes=draw(st.none() | st.integers(1, 2**62)),
        row_group_rows=draw(st.integers(1, 2**40)),
        bloom_columns=tuple(draw(st.lists(NAMES, max_size=3, unique=True))),
        salt=draw(st.none() | st.integers(0, 2**63 - 1)),
        tree=draw(st.text(min_size=1, max_size=20) | st.just('{"leaves":2,"a":[1]}')) if kind == "tree" else None,
    )


@given(layouts())
def test_text_and_json_give_the_layout_back(layout):
    assert Layout.parse(str(layout)) == layout
    assert Layout.from_json(layout.to_json()) == layout


@given(layouts(), layouts())
def test_ids_are_equal_exactly_when_layouts_are(one, other):
    assert (one.id == other.id) == (one == other)
    assert (one.changes_to(other) == ()) == (one == other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zorder(ts, payload_id)", Layout("zorder", ("ts", "payload_id"))),
        (" hilbert ( a,b , c ) ", Layout("hilbert", ("a", "b", "c"))),
        ('linear("ship date", `x,y`, geo.lat)', Layout("linear", ("ship date", "x,y", "geo.lat"))),
        (
            "zorder(a, bits=20, file_size=2200000B, row_group_rows=1000, bloom=[b, c], salt=7)",
            Layout("zorder", ("a",), 20, 2_200_000, 1000, ("b", "c"), 7),
        ),
    ],
)
def test_text_forms(text, expected):
    assert Layout.parse(text) == expected


def test_the_json_form_names_its_version_and_id():
    stored = json.loads(Layout("zorder", ("a", "b")).to_json())
    assert stored["version"] == 1
    assert stored["id"] == Layout.parse("zorder(a, b)").id
    assert stored["columns"] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zoder(a)", "Unknown layout 'zoder'. Did you mean 'zorder'"),
        ("zorder()", "at least one column"),
        ("zorder(a, b, a)", "Column 'a' is named twice"),
        ("zorder(a, bloom=[b, b])", "Column 'b' is named twice in bloom"),
        ("zorder(a, b, c, d, e, f, g, h, i)", "9 columns are too many"),
        ("zorder(a, bits=3)", "bits=3 is not between 4 and 32"),
        ("zorder(a, b, c, d, e, f, bits=21)", "use at most bits=20"),
        ("zorder(a, bits=x)", "bits='x' is not a whole number"),
        ("zorder(a, bitz=3)", "Unknown option 'bitz'.*Did you mean 'bits'"),
        ("zorder(a, bits=8, bits=9)", "option bits stands twice"),
        ("zorder(a, file_size=128)", "128' is not a size.*128MB"),
        ("zorder(a, file_size=0B)", "not a whole number of bytes"),
        ("zorder(a, row_group_rows=0)", "row_group_rows=0 is not a positive"),
        ("zorder(bits=8, a)", "column 'a' stands behind an option"),
        ("zorder(a", "'\\)?,' is missing at the end|'.' is missing at the end"),
        ("zorder(a b)", "',' is missing before 'b'"),
        ("zorder(a,)", "a column is missing before '\\)'"),
        ("zorder(a) x", "goes on behind the closing"),
        ("zorder", "'\\(' is missing at the end"),
        ("", "a layout such as zorder is missing"),
        ('zorder("a)', "Can't read"),
    ],
)
def test_bad_text_is_explained(text, message):
    with pytest.raises(LayoutError, match=message):
        Layout.parse(text)


def test_all_problems_come_together():
    with pytest.raises(LayoutError) as caught:
        Layout("zoder", ("a", "a"), bits=99, row_group_rows=-1)
    for part in ("zoder", "twice", "bits=99", "row_group_rows=-1"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"version": 2}', "version '2'.*Update zonal"),
        ('{"version": 1, "kind": "zorder"}', "has no columns"),
        ('{"version": 1, "kind": "zorder", "columns": "ab"}', "not a list"),
        ('{"version": 1, "kind": "zorder", "columns": ["a"], "id": "x"}', "has the id 'x' instead of"),
        ('{"version": 1, "kind": "zorder", "columns": [1]}', "1 is not a column name"),
        ('{"version": 1, "kind": "zorder", "columns": ["a"], "bitz": 1}', "Unknown field 'bitz'.*'bits'"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_bad_json_is_explained(text, message):
    with pytest.raises(LayoutError, match=message):
        Layout.from_json(text)


def test_evolution_tells_new_keys_from_new_sizes():
    before = Layout.parse("zorder(a, b)")
    assert {change.effect for change in before.changes_to(Layout.parse("hilbert(a, b)"))} == {"new keys"}
    changes = before.changes_to(Layout.parse("zorder(a, b, file_size=1GiB, bloom=[c])"))
    assert [(change.what, change.effect) for change in changes] == [
        ("target_file_bytes", "new sizes"),
        ("bloom_columns", "new filters"),
    ]


@pytest.mark.parametrize(("columns", "bits"), [(1, 32), (2, 16), (3, 16), (4, 16), (5, 12), (8, 8)])
def test_bits_fill_one_word(columns, bits):
    layout = Layout("zorder", tuple("abcdefgh"[:columns]))
    assert layout.bits_per_column == bits


def test_advice_starts_at_five_columns():
    assert Layout("zorder", tuple("abcd")).advice() == ()
    (advice,) = Layout("zorder", tuple("abcde")).advice()
    assert "Keep the 4 columns" in advice


# --- trees -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("zorder(ts, payload_id, file_size=128MiB)", "327433d5787f"),
        ("linear(a, b, file_size=128MiB, bits=8, salt=3)", "29986db5969e"),
    ],
)
def test_layouts_stored_before_there_were_trees_keep_their_ids(text, identity):
    layout = Layout.parse(text)
    assert layout.id == identity
    assert "tree" not in json.loads(layout.to_json())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout("tree", ("a",)), "learned from queries"),
        (lambda: Layout.parse("tree(a, b)"), "learned from queries"),
        (lambda: Layout("tree", ("a",), tree=7), "learned from queries"),
        (lambda: Layout("zorder", ("a",), tree="{}"), "Cuts belong to a tree, not to 'zorder'"),
        (lambda: Layout("tree", ("a",), tree="x" * (MAX_TREE_TEXT + 1)), "1,048,577 characters"),
        (lambda: Layout("tree", tuple(f"c{n}" for n in range(33)), tree="{}"), "33 columns are too many.*up to 32"),
        (lambda: Layout("tree", ("a", "b", "c", "d", "e"), tree="{}", bits=17), "use at most bits=16"),
    ],
)
def test_trees_need_cuts_and_nothing_else_has_them(make, message):
    with pytest.raises(LayoutError, match=message):
        make()


def test_people_see_the_leaves_of_a_tree_instead_of_its_cuts():
    layout = Layout("tree", ("ts", "x y"), tree='{"leaves":214,"nodes":"' + "q" * 5000 + '"}', row_group_rows=10)
    assert layout.short == 'tree(ts, "x y", row_group_rows=10; 214 leaves)'
    assert repr(layout) == f"Layout({layout.short!r})"
    assert Layout.parse(str(layout)) == layout
    assert Layout("tree", ("a",), tree="hostile").short == "tree(a)"
    assert all(Layout(kind, ("a", "b")).short == f"{kind}(a, b)" for kind in CURVES)


def test_the_rows_of_a_leaf_are_ordered_by_the_first_four_columns():
    layout = Layout("tree", tuple("abcdef"), tree="{}")
    assert (layout.curve_columns, layout.bits_per_column) == (tuple("abcd"), 16)
    assert Layout("tree", ("a",), tree="{}").bits_per_column == 32
    assert Layout("zorder", tuple("abcdef")).curve_columns == tuple("abcdef")
    assert layout.advice() == (), "a tree gives each column as many cuts as it is worth"


def test_other_cuts_are_new_keys():
    (change,) = Layout("tree", ("a",), tree="{}").changes_to(Layout("tree", ("a",), tree="[]"))
    assert change.effect == "new keys"
    assert str(change) == "tree: other cuts (new keys)"


def test_hostile_names_stay_short_in_messages():
    with pytest.raises(LayoutError) as caught:
        Layout("z" * 100_000 + "\n\x1b[31m", ("a",))
    assert len(str(caught.value)) < 300
    assert "\x1b" not in str(caught.value)
