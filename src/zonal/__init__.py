"""zonal makes lakehouse tables skippable: it clusters their rows over many columns at once."""

from zonal.batch import Clustered, cluster_batch
from zonal.errors import ZonalAdvice, ZonalError
from zonal.layout import Layout
from zonal.ranks import Ranks

__version__ = "0.1.0"

__all__ = ["Clustered", "Layout", "Ranks", "ZonalAdvice", "ZonalError", "__version__", "cluster_batch"]
