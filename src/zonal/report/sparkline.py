"""Draw numbers over time as one line of text."""

import math
from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "·"


def sparkline(values: Sequence[float | None], *, top: float | None = None) -> str:
    """Draw one character per number: from ▁ for 0 to █ for `top`, and a dot for an unknown number.

    Without `top`, the greatest number is the top: the line shows the course, and the text beside it the values.
    Numbers above the top are drawn as the top, negative ones as 0.

    >>> sparkline([0, 0.1, None, 0.2, 0.4])
    '▁▃·▅█'
    >>> sparkline([0.1, 0.2], top=1)
    '▂▂'
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    highest = max(known, default=0.0) if top is None else top
    return "".join(_block(value, highest) for value in values)


def _block(value: float | None, top: float) -> str:
    if value is None or not math.isfinite(value):
        return _UNKNOWN
    if top <= 0 or value <= 0:
        return _BLOCKS[0]
    return _BLOCKS[round(min(value / top, 1.0) * (len(_BLOCKS) - 1))]
