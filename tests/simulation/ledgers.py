"""The rows that a table must have, whatever happens, and what other writers may do to it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa

from support.cluster_tables import Delta, Home, Iceberg, telemetry
from support.local_runner import run_here
from zonal.rewriting.new_files import NewFiles
from zonal.verbs.cluster import cluster

COLUMNS = ("id", "x", "y", "s", "p")
KEYS = ("x", "y", "s")
"""Columns that others may rename or drop."""


class Ledger:
    """A table, its rows by their id, and the names of its columns; every act of another writer changes both."""

    ACTS: Sequence[str] = ()
    UNSETTLING = frozenset({"recreate", "recreate_on_files", "rename_key", "drop_key"})
    """Acts after which a verb's options may not fit the table any more."""
    MEANWHILE: Sequence[str] = ()
    """Acts in every schedule, between writing and commit."""
    table: Home

    def __init__(self, rng: Random, folder: Path) -> None:
        self.rng, self.folder = rng, folder
        self.rows: dict[int, tuple] = {}
        self.names = {column: column for column in COLUMNS}
        self.next = self.extra = 0
        self.done: list[str] = []
        self.past: list[tuple[dict[int, tuple], dict[str, str]]] = []
        """Rows and names after each act."""
        self.copy: Home | None = None
        """Where a verb makes a copy of the table."""
        self.squatted: pa.Table | None = None
        """What another writer made there."""

    # --- acts ---

    def act(self, name: str) -> None:
        """Let another writer do something by its name."""
        self.done.append(name)
        getattr(self, name)()
        self.settled()

    def settled(self) -> None:
        """Remember what the table has now."""
        self.past.append((dict(self.rows), dict(self.names)))

    def several(self, *names: str) -> Callable[[], None]:
        """Return a call after which others have done all of this."""

        def act() -> None:
            for name in names:
                self.act(name)

        return act

    def fresh(self, count: int, p: str | None = None) -> pa.Table:
        """Make rows that the table will have, with the columns that it has now."""
        table = telemetry(count, self.rng.randrange(10**6), first=self.next)
        table = table if p is None else table.set_column(4, "p", pa.array([p] * count))
        self.next += count
        self.rows |= {row[0]: row for row in zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)}
        return self.named(table)

    def named(self, table: pa.Table) -> pa.Table:
        """Give rows the names that columns have now, without dropped ones."""
        kept = [name for name in COLUMNS if name in self.names]
        return table.select(kept).rename_columns([self.names[name] for name in kept])

    def stored(self) -> pa.Table:
        """Return the rows of the ledger as a table with today's columns."""
        columns = zip(*self.rows.values(), strict=True) if self.rows else [[]] * len(COLUMNS)
        kinds = (pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.string())
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return self.named(pa.table(dict(zip(COLUMNS, arrays, strict=True))))

    def forget_table(self) -> None:
        """Start anew, as a new table does."""
        self.rows, self.names = {}, {column: column for column in COLUMNS}

    def some(self) -> tuple[int, int]:
        """Draw a range of ids, of which the first is there."""
        low = self.rng.choice(sorted(self.rows) or [0])
        return low, low + self.rng.randrange(1, 120)

    def forget(self, low: int, high: int) -> None:
        self.rows = {number: row for number, row in self.rows.items() if not low <= number < high}

    def key(self) -> str | None:
        """Draw a key column that is still there."""
        return self.rng.choice([name for name in KEYS if name in self.names] or [None])

    def recluster(self) -> None:
        by = self.known(self.rng.choice([["x", "y"], ["y"]]))
        cluster(self.table.name, by=by, files=NewFiles(target_file_size=4000), spark=run_here, **self.table.options)

    def squat(self) -> None:
        """Make another table where the copy shall be."""
        if not is_there(self.copy):
            self.squatted = telemetry(3, 3)
            self.copy.make([self.squatted])

    # --- what is asked afterwards ---

    def known(self, columns: Iterable[str]) -> list[str]:
        """Return the columns by the names that they have now, without dropped ones; the ids where none is left."""
        return [self.names[name] for name in columns if name in self.names] or ["id"]

    def read(self) -> pa.Table:
        """Read all rows by the format's own library."""
        raise NotImplementedError

    def live(self) -> dict[str, int]:
        """Return the size of each data and delete file of the newest version, by its local path."""
        raise NotImplementedError

    def needed(self) -> set[str]:
        """Return all files that the newest version consists of, with those of its metadata."""
        return set(self.live())

    def ever(self) -> set[str]:
        """Return all files that a version still has or had."""
        return {str(path) for path in self.table.ever()}

    def copied(self) -> set[str]:
        """Return the files of the copy, if there is one and it isn't another writer's."""
        there = self.squatted is None and is_there(self.copy)
        return {str(path) for path in self.copy.root.rglob("*")} if there else set()

    def recorded_columns(self) -> tuple[list[str], list[str]]:
        """Return the columns of the layout that the table records, and the columns of the table."""
        raise NotImplementedError

    def wrong(self, found: pa.Table | None = None) -> str | None:
        """Compare rows that were read with the ledger's; None, or what is wrong."""
        return difference(self.read() if found is None else found, self.rows, self.names)

    def wrong_copy(self, found: pa.Table, since: int) -> str | None:
        """Compare a copy with all that the table was since its read began; None where it equals one of them."""
        differences = [difference(found, rows, names) for rows, names in self.past[since:]]
        return None if None in differences else differences[-1]


def is_there(copy: Home) -> bool:
    """Tell whether a table exists for its readers."""
    if isinstance(copy, Iceberg):
        return copy.catalog.table_exists(f"db.{copy.table_name}")
    return (copy.root / "_delta_log" / f"{0:020d}.json").exists() if isinstance(copy, Delta) else copy.root.exists()


def difference(found: pa.Table, rows: dict[int, tuple], names: dict[str, str]) -> str | None:
    """Say how many rows are lost, and how many there are that shouldn't be."""
    lacking = [name for name in names.values() if name not in found.column_names]
    if lacking:
        return f"columns are lost: {lacking}"
    kept = [at for at, name in enumerate(COLUMNS) if name in names]
    got = Counter(zip(*(found[names[COLUMNS[at]]].to_pylist() for at in kept), strict=True))
    want = Counter(tuple(row[at] for at in kept) for row in rows.values())
    lost, more = sum((want - got).values()), sum((got - want).values())
    return f"{lost} rows lost, {more} rows too many of {len(rows)}" if lost or more else None
