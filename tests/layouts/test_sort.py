"""The fast sort gives exactly numpy's stable order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.layouts.sort import stable_order

KEYS = st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 3), st.integers(2**64 - 4, 2**64 - 1)), max_size=60)


@given(KEYS)
def test_one_word_sorts_as_numpy_does(values):
    key = np.array(values, np.uint64)
    assert (stable_order([key]) == np.argsort(key, kind="stable")).all()


@given(KEYS, st.randoms())
def test_two_words_sort_one_after_the_other(values, random):
    low = np.array(values, np.uint64)
    high = np.array([random.randrange(3) for _ in values], np.uint64)
    assert (stable_order([high, low]) == np.lexsort((low, high))).all()


@pytest.mark.parametrize("bits", [1, 8, 40, 46, 47, 48, 56, 64])
def test_long_columns_whose_low_bits_decide(bits):
    """100,000 rows take 17 bits: from 48 bits on, some bits of the key don't fit beside them."""
    rng = np.random.default_rng(bits)
    key = rng.integers(0, 2**bits, 100_000, dtype=np.uint64, endpoint=bits == 64) if bits < 64 else rng.integers(
        0, 2**64 - 1, 100_000, dtype=np.uint64, endpoint=True
    )  # fmt: skip
    key[::7] &= np.uint64(~0xFFFF & (2**64 - 1))
    key[::3] |= np.uint64(1 << (bits - 1))
    assert (stable_order([key]) == np.argsort(key, kind="stable")).all()
    assert len(key) == 100_000
