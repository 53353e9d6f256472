"""The advice on a table as a value: what its queries read now, what each candidate would change, and what it costs.

Shares are of the table's bytes, 0 to 1, over the queries that were held out when the candidates were chosen, by their
weight. Prices are in the currency of the prices that were given, dollars by default. With hidden literals no text here
holds a value that a query compares with; the cuts of a tree do (`Layout.tree`), for they are made of them: write
`Layout.short` for people.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from zonal.display import Shown
from zonal.layouts.layout import Layout
from zonal.picture.picture import Picture
from zonal.workload.query import Summary

CandidateKind = Literal["leave", "sizes", "linear", "zorder", "hilbert", "tree", "partition"]
"""`leave`: nothing changes; `sizes`: the same order in files of the target size; `partition`: another partitioning and
a curve inside of it, for information: zonal doesn't repartition in place."""

Verdict = Literal["leave", "cluster", "unknown"]
"""`unknown`: the table or its queries tell too little; `Advice.reason` says what is missing."""


@dataclass(frozen=True)
class Reads:
    """What the queries read, as shares of the table."""

    files: float
    bytes: float
    row_groups: float | None
    """Share of the bytes where row groups are skipped, too; None where that isn't known."""
    low: float
    """Nine of ten times, the bytes that as many queries of this kind read in the mean lie from `low` …"""
    high: float
    """… to `high`."""


@dataclass(frozen=True)
class Regression:
    """A query that would read more than it does now."""

    query: str
    """Its filter for people; with hidden literals question marks stand for values."""
    source: str
    """Where it stands first: `queries.sql:12`."""
    count: int
    """Scans of the table that ask it."""
    before: float
    """Share of the bytes that it reads now."""
    after: float


@dataclass(frozen=True)
class Cost:
    """What a rewrite takes, and what it brings."""

    bytes: int
    """Read and written again."""
    core_seconds: float
    """Of reading, sorting and writing, from rows that were sorted and written on trial."""
    rewrite_price: float
    storage_price: float
    """Of keeping the old files until they expire."""
    saved_bytes_per_day: float
    """Bytes that queries no longer read; below 0 where they read more."""
    saved_price_per_day: float
    payback_days: float | None
    """Days after which the savings have paid for rewrite and storage; None where they never do."""

    @property
    def price(self) -> float:
        """Return what it costs in all."""
        return self.rewrite_price + self.storage_price


@dataclass(frozen=True)
class Candidate:
    """Something that could be done with the table."""

    kind: CandidateKind
    text: str
    """For people: `leave as it is`, `zorder(ts, payload_id)`, `tree(ts, user; 214 leaves)`."""
    layout: Layout | None
    """What `cluster` takes to do it; None where that isn't the way (leave, sizes, partition)."""
    reads: Reads
    files: int
    """Files that the table has afterwards, about."""
    gain: float
    """The part of the bytes read now that is saved, up to 1; below 0 where more is read."""
    cost: Cost
    worse: tuple[Regression, ...] = ()
    """Queries that read more than now, those that lose most first; five at most."""
    worse_count: int = 0
    """How many queries read more in all."""
    note: str = ""
    extrapolated: bool = False
    """Whether the sample was too small for so many files, and the shares follow the law of fewer ones."""


@dataclass(frozen=True)
class Filtered:
    """A column that queries filter."""

    column: str
    weight: float
    """Share of the queries' weight that filters it."""
    equality: float
    """Share of the weight that asks it for single values."""
    distinct: int | None
    """Distinct values in the sample; None where the column wasn't sampled."""
    distinct_is_all: bool
    """Whether the table has hardly more distinct values than the sample."""
    has_statistics: bool
    """Whether files tell the column's bounds."""
    partitions: bool = False
    """Whether the table is partitioned by it, or by a function of it."""


@dataclass(frozen=True)
class Bloom:
    """A column for which Bloom filters would help, next to the best layout."""

    column: str
    text: str
    """Why."""
    weight: float
    """Share of the queries' weight that asks for single values of it."""
    before: float
    """Share of the bytes that these queries read with the best layout alone."""
    after: float
    """… and with filters in its row groups."""


@dataclass(frozen=True)
class Caution:
    """A rule of experience that the table or its queries break."""

    code: str
    """Such as `skew`; see `zonal.advising.rules`."""
    text: str
    """What was found, with column and numbers, and what to do about it."""
    column: str | None = None


@dataclass(frozen=True)
class Prices:
    """What the account is made with."""

    scan: float = 5.0
    """A terabyte (10¹² bytes) read by queries."""
    core_hour: float = 0.05
    storage: float = 0.023
    """A gigabyte (10⁹ bytes) stored for a month of 30 days."""
    keep_days: float = 7.0
    """Days for which replaced files are kept."""


@dataclass(frozen=True)
class Advice(Shown):
    """What to do with a table, why, and what it brings."""

    table: str
    format: str
    version: int | None
    files: int
    bytes: int
    rows: int | None
    partitioning: tuple[str, ...]
    layout: str | None
    """The layout that the table records, for people."""
    target_file_bytes: int
    summary: Summary
    """What became of the logs' statements; with hidden literals its examples have no SQL."""
    queries: int
    """Distinct queries that the advice rests on."""
    held_out: int
    """Queries of these that the shares here are measured on; equal to `queries` where there were too few to part."""
    per_day: float
    """Scans of the table a day, as `assumptions` tells."""
    prices: Prices
    sample_rows: int
    now: Reads
    partition_only: Reads
    """What partitions alone skip."""
    filtered: tuple[Filtered, ...]
    """Those of the most weight first."""
    joins: tuple[str, ...]
    """The columns that queries join by, those of the most weight first."""
    candidates: tuple[Candidate, ...]
    """The best one first; `leave` is always among them, unless nothing is known."""
    best: Candidate | None
    """What is advised: a candidate with a layout, or `leave`; None where nothing is known."""
    verdict: Verdict
    reason: str
    """The verdict in a sentence or two, with its numbers."""
    blooms: tuple[Bloom, ...] = ()
    warnings: tuple[Caution, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What the account rests on and nobody told: queries a day, prices, columns."""
    hidden: bool = False
    """Whether literals are hidden."""
    seed: int = 0
    seconds: float = field(default=0.0, compare=False)
    """What the advice took."""
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """The files as rectangles and the heaviest queries as boxes, where it was asked for and queries are known."""


def best_layout(advice: Advice, *, bloom: bool = False) -> Layout | None:
    """Return the layout that the advice is for, with its Bloom filters on request; None where it is to leave it."""
    layout = None if advice.best is None else advice.best.layout
    if layout is None or not bloom:
        return layout
    return replace(layout, bloom_columns=tuple(found.column for found in advice.blooms))
