"""Space-filling curves: from one code a column to one sortable key a row, and back."""

from zonal.layouts.curves.key import decode, encode, from_signed, to_signed

__all__ = ["decode", "encode", "from_signed", "to_signed"]
