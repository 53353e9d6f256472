"""Sizes as text: printed exactly, and refused where they are no size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.errors import ZonalError
from zonal.values.sizes import format_size, parse_size


@given(st.integers(1, 2**62))
def test_printed_sizes_are_exact(size):
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    "text", ["", "12", "MB", "-1MB", "1 XB", "1e3B", "0.5B", "0MB", "1" * 40 + "B", "1MB1MB", "\u0661MB"]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ZonalError, match="is not a"):
        parse_size(text)
