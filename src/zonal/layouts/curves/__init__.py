"""Space-filling curves: from one code per column to one sortable key per row."""

from zonal.layouts.curves.key import encode, to_signed

__all__ = ["encode", "to_signed"]
