"""Sets of positions for tests of roaring bitmaps."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def sets(draw):
    """Positions in a few containers: a handful, many, runs, all; in 32-bit bitmaps with any high half."""
    chosen = set()
    for _ in range(draw(st.integers(0, 6))):
        high = draw(st.sampled_from([0, 0, 0, 1, 7, 2**31 - 1]))
        base = (high << 32) + (draw(st.sampled_from([0, 1, 2, 3, 4, 5, 500, 65535])) << 16)
        kind = draw(st.sampled_from(["few", "many", "runs", "all"]))
        if kind == "few":
            chosen |= {base + low for low in draw(st.lists(st.integers(0, 65535), max_size=20))}
        elif kind == "many":
            rng = np.random.default_rng(draw(st.integers(0, 99)))
            size = draw(st.sampled_from([4095, 4096, 4097, 30_000]))
            chosen |= {base + low for low in rng.choice(65536, size, replace=False).tolist()}
        elif kind == "runs":
            for start in draw(st.lists(st.integers(0, 65535), max_size=5)):
                chosen |= set(range(base + start, base + min(65536, start + 300)))
        else:
            chosen |= set(range(base, base + 65536))
    return chosen
