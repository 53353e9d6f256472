"""Time the curves of other libraries on the same keys, made one row at a time or with numpy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import hilbert
import numpy as np
import pymorton
import zCurve
from hilbertcurve.hilbertcurve import HilbertCurve

from benchmarks.data import codes
from benchmarks.measure import Peer, Target, Timed, cpu_seconds
from zonal.layouts.curves import encode
from zonal.values.arrays import UInt32Array

BITS = 16
PYTHON_ROWS = 20_000
NUMPY_ROWS = 1_000_000
TARGET = Target("times_faster", "≥", 50)

Points = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Library:
    """A library's function from points to keys, and the curve that it is compared with."""

    name: str
    kind: str
    keys: Callable[[Points], list[int]]
    bits: dict[int, int]
    """The widest codes that it takes, by the number of dimensions; it truncates wider ones without an error."""


def _pymorton(points: Points) -> list[int]:
    interleave: Callable[..., int] = pymorton.interleave2 if len(points[0]) == 2 else pymorton.interleave3
    return [interleave(*point[::-1]) for point in points]  # it puts the bits of the first number last


def _zcurve(points: Points) -> list[int]:
    interlace: Callable[..., int] = zCurve.interlace
    dimensions = len(points[0])
    return [interlace(*point[::-1], dims=dimensions, bits_per_dim=BITS) for point in points]


def _hilbertcurve(points: Points) -> list[int]:
    distances: list[int] = HilbertCurve(p=BITS, n=len(points[0])).distances_from_points(points)
    return distances


LIBRARIES = (
    Library("pymorton", "zorder", _pymorton, {2: 16, 3: 10}),
    Library("zCurve", "zorder", _zcurve, {2: 16, 3: 16}),
    Library("hilbertcurve", "hilbert", _hilbertcurve, {2: 16, 3: 16}),
)


def peers(rows: int) -> Iterator[Timed]:
    """Compare the time per row; the peers get fewer rows, and their keys must equal zonal's."""
    for dimensions in (2, 3):
        ours = codes(rows, dimensions, BITS)
        own = {kind: cpu_seconds(encode, kind, ours, BITS) for kind in ("zorder", "hilbert")}
        few = [code[:PYTHON_ROWS] for code in ours]
        points = np.stack(few, axis=1).tolist()
        for library in LIBRARIES:
            _check(library, few)
            name = f"{library.name}, {library.bits[dimensions]} bits"
            peer = Peer(name, len(points), cpu_seconds(library.keys, points))
            yield Timed(f"{library.kind}, {dimensions}-D", rows, own[library.kind], peer, TARGET)
        many = np.stack([code[:NUMPY_ROWS] for code in ours], axis=1)
        assert (hilbert.encode(many[: len(points)], dimensions, BITS) == encode("hilbert", few, BITS)[0]).all()
        peer = Peer(f"numpy-hilbert-curve, {BITS} bits", len(many), cpu_seconds(hilbert.encode, many, dimensions, BITS))
        yield Timed(f"hilbert, {dimensions}-D", rows, own["hilbert"], peer)


def _check(library: Library, few: Sequence[UInt32Array]) -> None:
    """Fail if the library computes other keys."""
    narrow = [code & np.uint32(2 ** library.bits[len(few)] - 1) for code in few]
    (keys,) = encode(library.kind, narrow, BITS)
    assert library.keys(np.stack(narrow, axis=1).tolist()) == keys.tolist(), f"{library.name} has other keys"
