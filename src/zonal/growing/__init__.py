"""Trees that are learned from queries."""

from zonal.growing.growth import grow

__all__ = ["grow"]
