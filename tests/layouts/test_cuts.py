"""Cuts stand at cell borders, keep the sizes, and divide rows by their keys alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.layouts.cuts import LARGEST, SMALLEST, Cuts, cell_cuts, cuts_within


def sizes(cuts, rows):
    return np.diff(np.append(cuts, rows))


@st.composite
def sorted_keys(draw):
    seed = draw(st.integers(0, 2**32))
    rows = draw(st.integers(1, 3000))
    distinct = draw(st.sampled_from([1, 2, 5, 50, 2**20, 2**63]))
    rng = np.random.default_rng(seed)
    key = rng.integers(0, distinct, rows).astype(np.uint64)
    if draw(st.booleans()):
        key[: rows // 2] = 7
    return np.sort(key)


@given(sorted_keys(), st.integers(10, 500))
def test_sizes_stay_near_the_target(key, target):
    cuts = cell_cuts([key], target)
    assert cuts[0] == 0
    assert (np.diff(cuts) > 0).all(), "pieces follow each other"
    pieces = sizes(cuts, len(key))
    assert pieces.max() <= LARGEST * target, f"a piece of {pieces.max()} rows for a target of {target}"
    if len(key) >= SMALLEST * target:
        assert pieces.min() >= SMALLEST * target, f"a piece of {pieces.min()} rows for a target of {target}"


@given(sorted_keys(), st.integers(1, 9))
def test_tiny_targets_work(key, target):
    pieces = sizes(cell_cuts([key], target), len(key))
    assert pieces.sum() == len(key)
    assert 1 <= pieces.max() <= max(2 * target, 1)


def test_the_number_of_pieces_is_kept():
    rng = np.random.default_rng(0)
    key = np.sort(rng.integers(0, 2**32, 200_000).astype(np.uint64))
    assert len(cell_cuts([key], 1000)) == pytest.approx(200, rel=0.02)


def test_uniform_cells_are_cut_at_their_borders():
    key = np.arange(64 * 100, dtype=np.uint64) // 100  # 64 cells of 100 rows
    assert cell_cuts([key], 430).tolist() == [*range(0, 6400, 400)], "whole groups of four cells"


def test_rows_of_one_key_are_cut_at_the_target():
    key = np.zeros(10_000, np.uint64)
    assert set(sizes(cell_cuts([key], 1000), 10_000).tolist()) == {1000}


def test_a_second_word_cuts_where_the_first_is_equal():
    tie = np.arange(10_000, dtype=np.uint64) // 800
    cuts = cell_cuts([np.zeros(10_000, np.uint64), tie], 1600)
    assert all(cut % 800 == 0 for cut in cuts), "a cut inside a run of equal words"


def test_row_groups_are_cut_inside_their_files():
    key = np.sort(np.random.default_rng(0).integers(0, 2**40, 50_000).astype(np.uint64))
    files = cell_cuts([key], 5000)
    groups = cuts_within([key], files, 600)
    assert len(groups) == len(files)
    for group, size in zip(groups, sizes(files, len(key)), strict=True):
        pieces = sizes(group, size)
        assert pieces.sum() == size
        assert pieces.max() <= LARGEST * 600
        assert pieces.min() >= SMALLEST * 600


def test_no_rows_have_no_cuts():
    assert len(cell_cuts([np.zeros(0, np.uint64)], 10)) == 0


@given(sorted_keys(), st.integers(10, 500))
def test_rows_go_to_the_piece_of_their_key(key, target):
    starts = cell_cuts([key], target)
    cuts = Cuts.at([key], starts)
    piece = cuts.assign([key])
    expected = [sum(border <= k for border in cuts.borders[0].tolist()) for k in key.tolist()]
    assert piece.tolist() == expected
    inside = np.flatnonzero(np.diff(key.astype(float), prepend=-1) > 0)
    real = [start for start in starts.tolist() if start in inside]
    assert cuts.pieces >= len(real), "every cut between two keys is a border"


@given(sorted_keys(), st.integers(10, 500), st.integers(0, 2**32))
def test_two_words_divide_the_rows_of_one_key(key, target, seed):
    tie = np.random.default_rng(seed).integers(0, 2**64 - 1, len(key), dtype=np.uint64)
    order = np.lexsort((tie, key))
    words = [key[order], tie[order]]
    starts = cell_cuts(words, target)
    piece = Cuts.at(words, starts).assign(words)
    expected = np.searchsorted(starts, np.arange(len(key)), side="right") - 1
    assert (piece == expected).all(), "different words, so each position is a border of its own"
