"""Values of an append: what rows must be, how they are divided into partitions, and what its commit adds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from zonal.errors import ZonalError, quoted
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Reading, Writing, Written
from zonal.snapshot import Snapshot

Transform = Literal["identity", "void", "year", "month", "day", "hour", "bucket", "truncate"]
PartitionValues = tuple[pa.Scalar, ...]
"""One value per field of the partitioning; null for a null."""


@dataclass(frozen=True)
class Transaction:
    """A name for one batch of an application: a table takes each of them once.

    Versions of an application rise, as the numbers of a stream's batches do; what isn't above the last one that the
    table has is there already.
    """

    application: str
    version: int

    @classmethod
    def of(cls, given: object) -> "Transaction | None":
        """Read what users give: a name and a number, or nothing."""
        if given is None:
            return None
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise ZonalError(f"transaction={quoted(repr(given))} is not a name and a number, as in ('orders', 7).")
        return cls(*given)

    def __post_init__(self) -> None:
        """Refuse what tables can't hold."""
        if not isinstance(self.application, str) or not self.application:
            raise ZonalError(f"{quoted(repr(self.application))} can't name an application of a transaction.")
        whole = isinstance(self.version, int) and not isinstance(self.version, bool)
        if not whole or not 0 <= self.version < 2**63:
            raise ZonalError(
                f"The version {quoted(repr(self.version))} of a transaction is not a whole number from 0 on."
            )


class TransactionSeenError(ZonalError):
    """The table has this transaction, or a later one of the same application, already."""


@dataclass(frozen=True)
class PartitionField:
    """One field of a table's partitioning: a function of a column."""

    column: tuple[int, ...]
    """Positions from the top-level column down to the source."""
    transform: Transform = "identity"
    width: int = 0
    """Number of buckets, or the width to which values are truncated."""


@dataclass(frozen=True, eq=False)
class Appending:
    """How rows become files of a table."""

    schema: pa.Schema
    """What rows must be: all columns by the names that users know, with their nullability."""
    partitioning: tuple[PartitionField, ...]
    in_files: tuple[int, ...]
    """Positions of the columns that files hold, in order."""
    reading: Reading
    """How rows are read back before they are sorted; its schema has the columns of `in_files` as files name them."""
    columns: Mapping[str, str]
    """Dotted path in files of each leaf column of the table's own schema."""
    writing: Writing
    """Without subfolders, which need the values of the partitions."""
    defaults: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """Values of columns that rows may lack; other nullable columns become null."""
    unfillable: Mapping[str, str] = field(default_factory=dict)
    """Why a column may not be left out, although it is nullable."""


@dataclass(frozen=True, eq=False)
class Append:
    """What one commit adds."""

    base: Snapshot
    """The version against which the rows were checked."""
    partitions: tuple[PartitionValues, ...]
    """Values of each partition, by the numbers that the files name."""
    added: tuple[Written, ...]
    layout: Layout
    run: str
    transaction: Transaction | None = None
