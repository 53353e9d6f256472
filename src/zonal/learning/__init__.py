"""Learning of trees: cuts chosen by the queries of a log."""

from zonal.learning.growth import grow

__all__ = ["grow"]
