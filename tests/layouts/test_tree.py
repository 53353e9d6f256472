"""Trees: paths follow the cuts for values of every type, the JSON form gives them back, hostile text is refused."""

import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_values import KINDS, VALUES, arrays, build
from zonal.errors import LayoutError
from zonal.layouts.cuts import LARGEST, Cuts, cuts_within, tree_cuts
from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.sort import stable_order
from zonal.layouts.tree import LEAF, MAX_DEPTH, NULLS, Tree, tree_of
from zonal.trials.boxes import code
from zonal.values.packed import pack
from zonal.values.words import family_of


def nested(cut, left=LEAF, right=LEAF):
    """A tree as (column, point), left, right."""
    return cut, left, right


def tree_from(columns, families, root):
    """Flatten a nested tree into the arrays of `Tree`."""
    nodes, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        nodes.append(None if node == LEAF else node[0])
        if node != LEAF:
            waiting += [node[2], node[1]]
    points = [
        sorted({node[1] for node in nodes if node and node[0] == at and node[1] is not None}, key=_order)
        for at in range(len(columns))
    ]
    column = np.array([LEAF if node is None else node[0] for node in nodes])
    cut = [NULLS if node is None or node[1] is None else points[node[0]].index(node[1]) for node in nodes]
    return Tree(tuple(columns), tuple(families), tuple(map(tuple, points)), column, np.array(cut))


def _order(point):
    return (True, 0.0) if point != point else (False, point)  # noqa: PLR0124 - NaN


def goes_right(value, point):
    """The definition of a cut."""
    if value is None:
        return False
    if point is None:
        return True
    if isinstance(point, float) and math.isnan(point):
        return isinstance(value, float) and math.isnan(value)
    return value >= point or (isinstance(value, float) and math.isnan(value))


def path_by_hand(root, row):
    path, depth = 0, 0
    while root != LEAF:
        (column, point), left, right = root
        if goes_right(row[column], point):
            path |= 1 << (63 - depth)
            root = right
        else:
            root = left
        depth += 1
    return path


def domain_of(array):
    """Each value in the predicates' domain, null as None."""
    coded = code(pa.table({"x": array}), ["x"])
    return [None if place < 0 else coded.points[0][place] for place in coded.codes[:, 0].tolist()]


@st.composite
def trees(draw, points, depth=5):
    """A nested tree that cuts columns at points of theirs."""
    if depth == 0 or not draw(st.booleans()):
        return LEAF
    column = draw(st.integers(0, len(points) - 1))
    point = draw(st.sampled_from([None, *points[column]]))
    return nested((column, point), draw(trees(points, depth - 1)), draw(trees(points, depth - 1)))


@st.composite
def cases(draw):
    """Two columns of any types, and a tree that cuts them at some of their own values and at others."""
    kinds = [draw(KINDS), draw(KINDS)]
    columns = [draw(arrays(kind)) for kind in kinds]
    rows = min(map(len, columns))
    data = pa.table({f"c{at}": column.slice(0, rows) for at, column in enumerate(columns)})
    others = [pa.chunked_array([build(draw(st.lists(VALUES[kind], max_size=5)), kind)]) for kind in kinds]
    known = [[*domain_of(data.column(at)), *domain_of(others[at])] for at in range(2)]
    points = [[value for value in each if value is not None and len(str(value)) < 200] for each in known]
    root = draw(trees([list(dict.fromkeys(each)) for each in points]))
    families = [str(family_of(kind)) for kind in kinds]
    return data, tree_from(data.column_names, families, root), root


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2)])
def test_values_below_points_that_share_their_first_word_go_left(kind):
    values = [Decimal("0.00"), Decimal("0.01"), Decimal("-0.01")]
    data = pa.table({"c": pa.array(values, kind)})
    cuts = {"column": np.array([0, -1, 0, -1, -1]), "cut": np.array([0, -1, 1, -1, -1])}
    tree = Tree(columns=("c",), families=("decimal128[2]",), points=((0, 1),), **cuts)
    assert tree.paths(data).tolist() == [1 << 63, 3 << 62, 0]


@given(cases())
def test_a_path_follows_the_cuts_for_values_of_every_type(case):
    data, tree, root = case
    rows = list(zip(*(domain_of(column) for column in data.columns), strict=True))
    assert tree.paths(data).tolist() == [path_by_hand(root, row) for row in rows]


@given(cases())
def test_the_json_form_gives_every_row_the_same_path(case):
    data, tree, _ = case
    again = Tree.from_json(tree.to_json(), tree.columns)
    assert again.paths(data).tolist() == tree.paths(data).tolist()
    assert repr(again.points) == repr(tree.points)
    assert again.to_json() == tree.to_json()
    assert tree.layout().short.endswith(f"; {tree.leaves} {'leaf' if tree.leaves == 1 else 'leaves'})")
    assert Layout.parse(str(tree.layout())) == tree.layout()


def test_byte_sequences_that_differ_in_zeros_at_their_end_are_told_apart():
    values = [b"", b"\0", b"a", b"a\0", b"a\0\0", b"a" * 8, b"a" * 8 + b"\0", b"a" * 16, b"b"]
    data = pa.table({"x": pa.array(values, pa.binary())})
    for point in values:
        tree = tree_from(["x"], ["bytes"], nested((0, point)))
        assert (tree.paths(data) > 0).tolist() == [value >= point for value in values]


def test_a_dictionary_is_looked_up_once_and_its_nulls_go_to_the_left():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 1]), pa.array(["b", "a", "unused"]))
    tree = tree_from(["x"], ["bytes"], nested((0, b"b")))
    assert (tree.paths(pa.table({"x": column})) > 0).tolist() == [True, False, False, True, False]


def test_struct_leaves_and_times_of_another_unit_are_cut():
    moments = pa.array([999, 1000, 1999, 2000, None], pa.timestamp("us"))
    data = pa.table({"s": pa.StructArray.from_arrays([moments], ["t"])})
    tree = tree_from(["s.t"], ["timestamp[ms]"], nested((0, 1), LEAF, nested((0, 2))))
    assert (tree.paths(data) >> np.uint64(62)).tolist() == [0, 2, 2, 3, 0]


def test_a_column_of_another_type_is_an_error_that_names_it():
    tree = tree_from(["ts"], ["timestamp[us]"], nested((0, 5)))
    with pytest.raises(LayoutError, match=r"column 'ts' at timestamp\[us\] values.*type 'string'"):
        tree.paths(pa.table({"ts": ["a"]}))


def test_a_tree_without_cuts_has_one_leaf():
    tree = tree_from(["x"], ["int"], LEAF)
    assert tree.leaves == 1
    assert tree.paths(pa.table({"x": [1, 2]})).tolist() == [0, 0]


# --- hostile text ----------------------------------------------------------------------------------------------------

GOOD = tree_from(["x", "y"], ["int", "bytes"], nested((0, 5), nested((1, b"m")), nested((0, None))))


def changed(**changes):
    return json.dumps(json.loads(GOOD.to_json()) | changes)


def chain(depth):
    """The nodes of a tree that is a chain of cuts to the left."""
    return pack(np.array([*([1] * depth), *([0] * (depth + 1))]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "can't be read"),
        ("[]", "can't be read"),
        ("[" * 10_000, "can't be read"),
        ('"' + "x" * 2_000_000 + '"', "too long"),
        (changed(version=2), "version '2'.*Update zonal"),
        (changed(leaves=7), "miscounted"),
        (changed(nodes="AAAA"), "damaged array"),
        (changed(nodes=7), "can't be read"),
        (changed(nodes=pack(np.zeros(20_000, np.int64))), "unexpected size"),
        (changed(nodes=pack(np.array([1, 0, 0, 0])), cuts=pack(np.array([1]))), "more than one tree"),
        (changed(nodes=pack(np.array([1, 0])), cuts=pack(np.array([1]))), "before its last leaf"),
        (changed(nodes=pack(np.zeros(0, np.int64)), cuts=pack(np.zeros(0, np.int64))), "0 nodes"),
        (changed(nodes=pack(np.array([3, 0, 0])), cuts=pack(np.array([1]))), "a column that it doesn't have"),
        (changed(nodes=pack(np.array([2**63, 0, 0], np.uint64)), cuts=pack(np.array([1]))), "a column that it doesn't"),
        (changed(nodes=pack(np.array([1, 0, 0])), cuts=pack(np.array([3]))), "a point that it doesn't have"),
        (changed(nodes=pack(np.array([1, 0, 0])), cuts=pack(np.array([1, 1]))), "can't be read"),
        (changed(nodes=chain(57), cuts=pack(np.ones(57, np.int64))), "more than 56 cuts deep"),
        (changed(columns=[]), "0 columns, and the layout 2"),
        (changed(columns=[{"family": "int", "words": []}] * 2), "too many words"),
        (changed(columns=[{"family": "int", "words": [pack(np.array([9, 3]))]}] * 2), "not in order"),
        (changed(columns=[{"family": "int", "words": [pack(np.array([3, 3]))]}] * 2), "not in order"),
        (changed(columns=[{"family": "os.system", "words": [pack(np.array([3]))]}] * 2), "no kind of values"),
        (changed(columns=[{"family": "timestamp[x]", "words": [pack(np.array([3]))]}] * 2), "no kind of values"),
        (changed(columns=[{"family": "float", "words": [pack(np.array([3]))]}] * 2), "damaged"),
        (changed(columns=[{"family": "bytes", "words": [pack(np.array([3]))] * 2}] * 2), "damaged"),
        (changed(columns=[{"family": "bytes", "words": [pack(np.array([3]))] * 40}] * 2), "too many words"),
    ],
)
def test_hostile_cuts_are_refused(text, message):
    with pytest.raises(LayoutError, match=message):
        Tree.from_json(text, ["x", "y"])


def test_the_deepest_tree_is_read():
    deepest = chain(MAX_DEPTH)
    text = changed(nodes=deepest, cuts=pack(np.ones(MAX_DEPTH, np.int64)), leaves=MAX_DEPTH + 1)
    tree = Tree.from_json(text, ["x", "y"])
    assert len(np.unique(tree.paths(pa.table({"x": [1, 9], "y": ["a", "b"]})))) == 2


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: changed(nodes=raw.hex())))
def test_any_text_is_read_or_refused(text):
    with pytest.raises(LayoutError):
        Tree.from_json(text, ["x", "y"])


# --- clipping --------------------------------------------------------------------------------------------------------


@given(cases(), st.integers(1, 6))
def test_units_of_neighboring_rows_lie_within_their_clips(case, parts):
    data, tree, _ = case
    if not data.num_rows:
        return
    paths = tree.paths(data)
    order = np.argsort(paths, kind="stable")
    coded = code(data, data.column_names)
    units = np.array_split(order, min(parts, len(order)))
    first = np.array([paths[unit[0]] for unit in units])
    last = np.array([paths[unit[-1]] for unit in units])
    low, high = tree.clip(first, last, coded.columns, coded.points)
    for at, unit in enumerate(units):
        places = coded.codes[unit]
        assert ((places >= low[at]) | (places < 0)).all()
        assert ((places <= high[at]) | (places < 0)).all()


def test_clips_end_at_the_cuts():
    tree = tree_from(["x"], ["int"], nested((0, 5), LEAF, nested((0, 8))))
    paths = tree.paths(pa.table({"x": [4, 5, 8]}))
    low, high = tree.clip(paths[[0, 1, 1, 0]], paths[[0, 1, 2, 2]], ["y", "x"], [[1], [3, 4, 6, 7, 9]])
    assert low[:, 1].tolist() == [-np.inf, 2, 2, -np.inf]
    assert high[:, 1].tolist() == [1, 3, np.inf, np.inf]
    assert np.isinf(low[:, 0]).all()


# --- cuts ------------------------------------------------------------------------------------------------------------


@st.composite
def keys(draw):
    """Sorted keys of a tree: paths of few nodes, and a curve's word behind them."""
    rows = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    path = rng.integers(0, 2 ** draw(st.integers(0, 6)), rows).astype(np.uint64) << np.uint64(58)
    curve = rng.integers(0, draw(st.sampled_from([1, 10, 2**40])), rows).astype(np.uint64)
    order = stable_order([path, curve])
    return [path[order], curve[order]]


@given(keys(), st.floats(1, 100))
def test_pieces_of_a_tree_begin_in_order_and_are_never_too_large(words, target):
    rows = len(words[0])
    starts = tree_cuts(words, target)
    sizes = np.diff(starts, append=rows)
    assert starts[0] == 0
    assert (sizes > 0).all()
    assert (sizes <= max(LARGEST * target + 1, 2)).all()


@given(keys(), st.floats(1, 100))
def test_small_pieces_are_left_only_between_large_ones(words, target):
    sizes = np.diff(tree_cuts(words, target), append=len(words[0]))
    pairs = sizes[1:] + sizes[:-1]
    small = np.minimum(sizes[1:], sizes[:-1]) < 0.5 * target
    assert (pairs[small] > 1.5 * target).all()


def test_files_end_at_the_topmost_cut_and_heavy_leaves_at_cells():
    path = np.repeat(np.array([0, 1, 2, 3], np.uint64), [100, 60, 40, 400]) << np.uint64(62)
    curve = np.concatenate([np.sort(np.arange(count) % 4) for count in (100, 60, 40, 400)]).astype(np.uint64)
    assert tree_cuts([path, curve], 100).tolist() == [0, 100, 160, 300, 400, 500], "40 rows stay with their sibling"
    assert tree_cuts([path, curve], 1000).tolist() == [0]


def test_no_rows_have_no_pieces():
    empty = np.zeros(0, np.uint64)
    assert tree_cuts([empty, empty], 10).tolist() == []


@given(keys(), st.integers(5, 60))
def test_rows_of_a_sample_are_assigned_to_the_pieces_that_they_were_cut_into(words, target):
    starts = tree_cuts(words, target)
    pieces = Cuts.at(words, starts).assign(words)
    assert (np.diff(pieces) >= 0).all()
    inner = starts[1:]
    real = (words[0][inner] != words[0][inner - 1]) | (words[1][inner] != words[1][inner - 1])
    assert (np.diff(pieces)[inner - 1][real] == 1).all()


def test_row_groups_of_a_tree_end_at_its_cuts():
    path = np.repeat(np.arange(8, dtype=np.uint64), 10) << np.uint64(61)
    words = [path, np.arange(80, dtype=np.uint64)]
    files = tree_cuts(words, 40)
    assert files.tolist() == [0, 40]
    assert [each.tolist() for each in cuts_within(words, files, 10, kind="tree")] == [[0, 10, 20, 30]] * 2


# --- keys ------------------------------------------------------------------------------------------------------------


def test_keys_of_a_tree_are_the_path_and_a_word_of_the_curve():
    rng = np.random.default_rng(0)
    data = pa.table({"x": rng.integers(0, 10, 200), "y": rng.choice(["a", "m", "z"], 200)})
    layout = GOOD.layout()
    path, curve = key_words(data, layout, Ranks.fit(data, layout.curve_columns))
    assert path.tolist() == GOOD.paths(data).tolist()
    (plain,) = key_words(data, Layout("zorder", ("x", "y")), Ranks.fit(data, ["x", "y"]))
    assert curve.tolist() == plain.tolist()
    assert tree_of(layout) is tree_of(layout), "the same cuts are read once"
