"""Roaring bitmaps with every kind of container are read as other libraries write them; damage is refused."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import DeletionVector
from pyroaring import BitMap, BitMap64

from support.roaring_sets import sets
from zonal.worker.problem import FileError
from zonal.worker.read.roaring import positions


@settings(max_examples=60, deadline=None)
@given(sets(), st.booleans())
def test_positions_are_those_that_another_library_wrote(chosen, optimized):
    bitmap = BitMap64(chosen)
    if optimized:
        bitmap.run_optimize()
    data = bitmap.serialize()
    found = positions(data, count=len(chosen))
    assert found.dtype == np.int64
    assert found.tolist() == sorted(chosen)


@settings(max_examples=30, deadline=None)
@given(sets().map(lambda chosen: {position & 0x1FFFFFFFF for position in chosen}))
def test_positions_are_those_that_pyiceberg_reads(chosen):
    data = BitMap64(chosen).serialize()
    bitmaps = DeletionVector._deserialize_bitmap(data)
    judged = [(high << 32) + low for high, bitmap in enumerate(bitmaps) for low in bitmap]
    assert positions(data, count=len(chosen)).tolist() == judged


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_have_the_expected_number_of_positions(data):
    chosen = {*range(1000, 3000), *range(70_000, 80_000, 2), *range(10**10, 10**10 + 9)}
    good = bytearray(BitMap64(chosen).serialize())
    if data.draw(st.booleans()):
        good = good[: data.draw(st.integers(0, len(good)))]
    for _ in range(data.draw(st.integers(0, 4))):
        if good:
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = positions(bytes(good), count=len(chosen))
    except FileError:
        return
    assert len(found) == len(chosen)
    assert (np.diff(found) > 0).all()
    assert found[0] >= 0


def one(cookie_and_rest, key=0):
    return struct.pack("<QI", 1, key) + cookie_and_rest


RUNS = 12347
BOMB = struct.pack("<I", RUNS | 2 << 16) + b"\x07" + struct.pack("<HH", 0, 65535) * 3
HOSTILE = {
    "no count": (b"\0" * 7, "ends too early"),
    "more bitmaps than bytes": (struct.pack("<Q", 2**63), "ends too early"),
    "unknown cookie": (one(b"\0" * 8), "begins with 0"),
    "key too large": (one(BitMap([1]).serialize(), 2**31), "too large"),
    "keys out of order": (
        struct.pack("<Q", 2) + (struct.pack("<I", 5) + BitMap([1]).serialize()) * 2,
        "out of order",
    ),
    "too many containers": (one(struct.pack("<II", 12346, 70_000)), "at most 65,536"),
    "bytes behind it": (one(BitMap([1, 2]).serialize()) + b"x", "1 bytes too many"),
    "other count": (one(BitMap([1, 2, 3]).serialize()), "3 positions instead of 2"),
    "container cut": (one(BitMap([1, 2]).serialize()[:-1]), "ends too early"),
    "array not ascending": (one(struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 9, 3)), "ascending"),
    "containers not ascending": (
        one(struct.pack("<IIHHHHIIHH", 12346, 2, 1, 0, 0, 0, 24, 26, 5, 5)),
        "ascending",
    ),
    "run beyond the container": (
        one(struct.pack("<IBHHHHH", RUNS, 1, 0, 1, 1, 65535, 1)),
        "as many positions as its header says",
    ),
    "run of another count": (
        one(struct.pack("<IBHHHHH", RUNS, 1, 0, 1, 1, 0, 5)),
        "as many positions as its header says",
    ),
    "bits of another count": (
        one(struct.pack("<IIHHI", 12346, 1, 0, 5000, 16) + b"\x01" + bytes(8191)),
        "5,001 positions instead of 2",
    ),
    "bomb": (one(BOMB + struct.pack("<HHH", 1, 0, 65535) * 3), "196,608 positions instead of 2"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_bytes_are_refused(case):
    data, message = HOSTILE[case]
    with pytest.raises(FileError, match=message):
        positions(data, count=2)


def test_empty_bitmaps_between_others_are_read():
    data = (
        struct.pack("<Q", 2)
        + struct.pack("<I", 0)
        + BitMap().serialize()
        + struct.pack("<I", 1)
        + BitMap([3]).serialize()
    )
    assert positions(data, count=1).tolist() == [2**32 + 3]


def test_bits_of_another_number_than_the_header_says_are_refused():
    data = one(struct.pack("<IIHHI", 12346, 1, 0, 4999, 16) + b"\x01" + bytes(8191))
    with pytest.raises(FileError, match="as many positions as its header says"):
        positions(data, count=5000)
