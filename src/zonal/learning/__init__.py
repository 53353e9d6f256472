"""Trees that are learned from queries."""

from zonal.learning.growth import grow

__all__ = ["grow"]
