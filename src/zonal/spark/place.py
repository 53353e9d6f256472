"""Where Spark runs, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zonal.arguments import check_arguments

HERE = "here"
"""The master that stands for no Spark at all."""


@dataclass(frozen=True)
class Spark:
    """Where a new Spark session runs, and its settings.

    Arguments:
        master: the Spark master, such as `yarn` or `local[4]`; by default, all cores of this machine. With `here`,
            threads of this process do the work, without Spark and Java.
        remote: a Spark Connect server, as `sc://HOST`, instead of a master.
        conf: settings of the session.

    Example:
        >>> zonal.cluster("orders", by="id", spark=zonal.Spark(master="local[2]"))  # doctest: +SKIP
    """

    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    """Not shown: it may hold a token."""
    conf: Mapping[str, str] | None = field(default=None, repr=False)
    """Not shown: it may hold secrets."""

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))
