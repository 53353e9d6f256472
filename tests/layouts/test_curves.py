"""The laws of the curves, checked against definitions that are slow and plain."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.curve_decoding import as_integers, decode
from zonal.errors import LayoutError
from zonal.layouts.curves import encode, to_signed
from zonal.layouts.layout import CURVES, most_bits


@st.composite
def code_columns(draw):
    columns = draw(st.integers(1, 8))
    bits = draw(st.integers(1, most_bits(columns)))
    rows = draw(st.lists(st.tuples(*[st.integers(0, 2**bits - 1)] * columns), min_size=1, max_size=30))
    return [np.array(column, np.uint32) for column in zip(*rows, strict=True)], bits


def all_cells(columns, bits):
    cells = np.array(list(product(range(2**bits), repeat=columns)), np.uint32)
    return list(cells.T), cells.astype(int)


@pytest.mark.parametrize("kind", CURVES)
@given(given_codes=code_columns())
def test_decoding_gives_the_codes_back(kind, given_codes):
    codes, bits = given_codes
    words = encode(kind, codes, bits)
    assert len(words) == (1 if len(codes) * bits <= 64 else 2), "a second word only where the first is full"
    rows = [tuple(map(int, row)) for row in zip(*codes, strict=True)]
    assert decode(kind, words, len(codes), bits) == rows, f"{kind} loses bits of {bits}-bit codes"


@given(given_codes=code_columns())
def test_zorder_is_bit_by_bit_interleaving(given_codes):
    codes, bits = given_codes
    keys = as_integers(encode("zorder", codes, bits), low_bits=64 // len(codes) * len(codes))
    for row, key in zip(zip(*codes, strict=True), keys, strict=True):
        digits = [f"{int(code):0{bits}b}" for code in row]
        expected = int("".join(digit[place] for place in range(bits) for digit in digits), 2)
        assert key == expected, f"magic numbers and plain interleaving differ for {row}"


@given(given_codes=code_columns(), data=st.data())
def test_zorder_is_monotone_in_each_column(given_codes, data):
    codes, bits = given_codes
    chosen = data.draw(st.integers(0, len(codes) - 1))
    larger = [code.copy() for code in codes]
    larger[chosen] = np.array([data.draw(st.integers(int(code), 2**bits - 1)) for code in codes[chosen]], np.uint32)
    before, after = as_integers(encode("zorder", codes, bits)), as_integers(encode("zorder", larger, bits))
    assert all(a <= b for a, b in zip(before, after, strict=True)), "a larger code gave a smaller key"


@given(given_codes=code_columns())
def test_linear_sorts_as_the_rows_do(given_codes):
    codes, bits = given_codes
    rows = [tuple(map(int, row)) for row in zip(*codes, strict=True)]
    keys = as_integers(encode("linear", codes, bits))
    by_key = [row for _, row in sorted(zip(keys, rows, strict=True))]
    assert by_key == sorted(rows), "linear keys don't sort as the rows"


@pytest.mark.parametrize(("columns", "bits"), [(1, 5), (2, 1), (2, 5), (3, 1), (3, 3), (4, 1), (4, 2), (5, 2), (8, 1)])
def test_hilbert_meets_its_definition(columns, bits):
    codes, cells = all_cells(columns, bits)
    (key,) = encode("hilbert", codes, bits)
    assert sorted(key.tolist()) == list(range(2 ** (columns * bits))), "every position is taken once"
    path = cells[np.argsort(key)]
    assert (path[0] == 0).all(), "the curve begins in the origin"
    steps = np.abs(np.diff(path, axis=0)).sum(axis=1)
    assert (steps == 1).all(), "neighbors on the curve differ by one step in one column"
    for level in range(1, bits):
        side = 2 ** (columns * (bits - level))
        cubes = (path >> (bits - level)).reshape(-1, side, columns)
        assert (cubes == cubes[:, :1]).all(), f"every sub-cube of level {level} is one run of the curve"


def textbook_hilbert(bits):
    """The plane's curve by its picture: four copies of the smaller one, the first and the last turned."""
    path = [(0, 0)]
    for level in range(bits):
        side = 2**level
        path = (
            [(y, x) for x, y in path]
            + [(x, y + side) for x, y in path]
            + [(x + side, y + side) for x, y in path]
            + [(2 * side - 1 - y, side - 1 - x) for x, y in path]
        )
    return path


@pytest.mark.parametrize("bits", range(1, 7))
def test_hilbert_in_the_plane_is_the_textbook_curve(bits):
    codes, cells = all_cells(2, bits)
    (key,) = encode("hilbert", codes, bits)
    path = [tuple(cell) for cell in cells[np.argsort(key)]]
    expected = textbook_hilbert(bits)
    assert path in (expected, [(y, x) for x, y in expected]), "neither the textbook's curve nor its mirror image"


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_signed_words_keep_the_order(values):
    words = np.array(values, np.uint64)
    signed = to_signed(words)
    assert (np.argsort(signed, kind="stable") == np.argsort(words, kind="stable")).all()
    assert len(set(signed.tolist())) == len(set(values)), "different words stay different"


@pytest.mark.parametrize("kind", CURVES)
def test_no_rows_are_no_keys(kind):
    (key,) = encode(kind, [np.zeros(0, np.uint32)] * 2, 16)
    assert len(key) == 0


def test_rows_of_several_blocks_are_keyed_alike():
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 2**16, 100_000).astype(np.uint32) for _ in range(3)]
    for kind in CURVES:
        (whole,) = encode(kind, codes, 16)
        (part,) = encode(kind, [code[70_000:70_010] for code in codes], 16)
        assert (whole[70_000:70_010] == part).all(), f"{kind} depends on the block"


@pytest.mark.parametrize(
    ("kind", "columns", "bits", "message"),
    [
        ("zorderr", 2, 8, "Did you mean 'zorder'"),
        ("zorder", 9, 4, "1 to 8 columns"),
        ("hilbert", 6, 21, "1 to 20 bits per column, not 21"),
        ("linear", 2, 33, "1 to 32 bits per column, not 33"),
    ],
)
def test_what_makes_no_key_is_refused(kind, columns, bits, message):
    with pytest.raises(LayoutError, match=message):
        encode(kind, [np.zeros(1, np.uint32)] * columns, bits)
