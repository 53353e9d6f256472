"""The advice on a table as a value: what its queries read now, what each candidate would change, and what it costs.

Shares are weighted means over the held-out queries of the part of the table's bytes that is read, 0 to 1. Prices are in
the currency of the given prices, dollars by default. With hidden literals no text here holds a value of a query; the
cuts of a tree (`Layout.tree`) do, as they are made from such values: write `Layout.short` for people.
"""

from dataclasses import dataclass, field
from typing import Literal

from zonal.arguments import check_arguments
from zonal.display import Shown
from zonal.errors import ZonalError, option
from zonal.layouts.layout import Layout
from zonal.picture.picture import Picture
from zonal.snapshot import TableVersion
from zonal.workload.query import Summary

CandidateKind = Literal["leave", "sizes", "linear", "zorder", "hilbert", "tree", "partition"]
"""`leave`: nothing changes; `sizes`: the same order in files of the target size; `partition`: another partitioning and
a curve inside of it, for information: zonal doesn't repartition in place."""

Verdict = Literal["leave", "cluster", "unknown"]
"""`unknown`: too little is known of the table or its queries; `Advice.reason` says what is missing."""


@dataclass(frozen=True)
class Reads:
    """What the queries read, as shares of the table."""

    files: float
    bytes: float
    row_groups: float | None
    """Share of the bytes where row groups are skipped, too; None where that isn't known."""
    low: float
    """Lower end of the 90 % interval of the mean share of bytes that as many queries of this kind read."""
    high: float
    """Upper end of that interval."""


@dataclass(frozen=True)
class Regression:
    """A query that would read more than it does now."""

    query: str
    """Its filter for people; with hidden literals question marks stand for values."""
    source: str
    """Its first place in the logs: `queries.sql:12`."""
    count: int
    """Scans of the table by this query."""
    before: float
    """Share of the bytes that it reads now."""
    after: float


@dataclass(frozen=True)
class Cost:
    """What a rewrite costs and saves."""

    bytes: int
    """Bytes that are read and written again."""
    core_seconds: float
    """Time of reading, sorting and writing, extrapolated from rows that were sorted and written on trial."""
    rewrite_price: float
    storage_price: float
    """Price of keeping the old files until they expire."""
    saved_bytes_per_day: float
    """Bytes that queries no longer read; below 0 where they read more."""
    saved_price_per_day: float
    payback_days: float | None
    """Days until the savings equal the price of rewrite and storage; None where they never do."""

    @property
    def price(self) -> float:
        """Return the total price."""
        return self.rewrite_price + self.storage_price


@dataclass(frozen=True)
class Candidate:
    """Something that could be done with the table."""

    kind: CandidateKind
    text: str
    """For people: `leave as it is`, `zorder(ts, payload_id)`, `tree(ts, user; 214 leaves)`."""
    layout: Layout | None
    """The layout to `cluster` by; None for candidates that `cluster` doesn't do (leave, sizes, partition)."""
    reads: Reads
    files: int
    """Approximate number of files afterwards."""
    gain: float
    """The part of the bytes read now that is saved, up to 1; below 0 where more is read."""
    cost: Cost
    worse: tuple[Regression, ...] = ()
    """Queries that read more than now, those that lose most first; at most five."""
    worse_count: int = 0
    """How many queries read more than now."""
    note: str = ""
    extrapolated: bool = False
    """Whether the sample was too small for so many files, so that the shares are extrapolated from fewer files."""


@dataclass(frozen=True)
class Filtered:
    """A column that queries filter."""

    column: str
    weight: float
    """Share of the queries' weight that filters it."""
    equality: float
    """Share of the weight that filters it by equality."""
    distinct: int | None
    """Distinct values in the sample; None where the column wasn't sampled."""
    distinct_is_all: bool
    """Whether the sample has nearly all distinct values of the table."""
    has_statistics: bool
    """Whether most files have bounds of the column."""
    partitions: bool = False
    """Whether the table is partitioned by it, or by a function of it."""


@dataclass(frozen=True)
class Bloom:
    """A column for which Bloom filters would help, next to the best layout."""

    column: str
    text: str
    """The reason, with its numbers."""
    weight: float
    """Share of the queries' weight that filters it by equality."""
    before: float
    """Share of the bytes that these queries read with the best layout alone."""
    after: float
    """Share of the bytes that they read with Bloom filters as well."""


@dataclass(frozen=True)
class Caution:
    """A known problem of layouts that the table or its queries have."""

    code: str
    """Such as `skew`; see `zonal.advising.rules`."""
    text: str
    """The problem, with column and numbers, and what to do about it."""
    column: str | None = None


@dataclass(frozen=True)
class Prices:
    """Prices in dollars that costs and savings are computed with.

    Arguments:
        scan: per terabyte (10¹² bytes) read by queries.
        core_hour: per core-hour of the rewrite.
        storage: per gigabyte (10⁹ bytes) stored for a month of 30 days.
        keep_days: days for which replaced files are kept.
    """

    scan: float = 5.0
    core_hour: float = 0.05
    storage: float = 0.023
    keep_days: float = 7.0

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))

    def check(self) -> None:
        """Raise an error for a price that is none."""
        names = {
            "scan_price": self.scan,
            "core_hour_price": self.core_hour,
            "storage_price": self.storage,
            "keep_days": self.keep_days,
        }
        for name, value in names.items():
            if not 0 <= value < float("inf"):
                raise ZonalError(f"{option(name, value)} is not a number from 0 on.")


@dataclass(frozen=True)
class AdvisedQueries:
    """The queries that an advice is based on, and how they were found in the logs."""

    summary: Summary
    """How many of the logs' statements could be used; with hidden literals its examples have no SQL."""
    queries: int
    """Number of distinct queries."""
    held_out: int
    """Held-out queries, on which the shares here are measured; equal to `queries` where there were too few to split."""
    per_day: float
    """Scans of the table per day; `assumptions` says where the number comes from."""
    filtered: tuple[Filtered, ...]
    """Columns that queries filter, those of the most weight first."""
    joins: tuple[str, ...]
    """The columns that queries join by, those of the most weight first."""
    hidden: bool = False
    """Whether literals are hidden."""


@dataclass(frozen=True)
class Basis:
    """What the numbers of an advice rest on."""

    target_file_bytes: int
    prices: Prices
    sample_rows: int
    assumptions: tuple[str, ...] = ()
    """Assumptions behind the costs: queries per day, prices, columns."""
    seed: int = 0
    seconds: float = field(default=0.0, compare=False)
    """Time that the advice took."""


@dataclass(frozen=True)
class Advice(Shown):
    """What to do with a table, why, and what that saves."""

    table: TableVersion
    workload: AdvisedQueries
    basis: Basis
    now: Reads
    partition_only: Reads
    """What queries read if only partitions are skipped."""
    candidates: tuple[Candidate, ...]
    """The best one first; `leave` is always among them, unless nothing is known."""
    best: Candidate | None
    """The advised candidate, with a layout, or `leave`; None where nothing is known."""
    verdict: Verdict
    reason: str
    """The verdict in a sentence or two, with its numbers."""
    blooms: tuple[Bloom, ...] = ()
    warnings: tuple[Caution, ...] = ()
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """The files as rectangles and the heaviest queries as boxes, where it was requested and queries are known."""
