"""How much of a log and of a table is looked at, as a value."""

from dataclasses import dataclass

from zonal.arguments import check_arguments
from zonal.errors import ZonalError, option

SAMPLE_QUERIES = 1000
SAMPLE_ROWS = 60_000


@dataclass(frozen=True)
class Sampling:
    """How much of a log and of a table is looked at.

    Arguments:
        queries: the most different queries that `audit` replays; of more, a seeded sample.
        rows: how many rows of the table to sample.
        seed: of all random choices.
        look: whether `audit` samples rows and footers at all, for what the metadata doesn't tell: selectivity,
            row-group skipping, and the prediction of a fresh layout.

    Example:
        >>> from_metadata = zonal.Sampling(look=False)
        >>> zonal.audit("events", queries=["queries.sql"], sampling=from_metadata).made.seed
        0
    """

    queries: int = SAMPLE_QUERIES
    rows: int = SAMPLE_ROWS
    seed: int = 0
    look: bool = True

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))

    def check(self) -> None:
        """Raise an error for numbers out of range."""
        for name, value in {"sample": self.queries, "sample_rows": self.rows}.items():
            if value < 1:
                raise ZonalError(f"{option(name, value)} is not a positive number.")
        if self.seed < 0:
            raise ZonalError(f"{option('seed', self.seed)} is negative: give a number from 0 on.")
