"""Make tables with the formats' usual writers, append by append, and compact them by size alone.

Delta is written by deltalake (delta-rs), Iceberg by PyIceberg.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from zonal.errors import TableError, ZonalError, quoted
from zonal.tables.protocol import Rewritable
from zonal.values.progress import Progress, Step

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

IDENTIFIER = "demo.telemetry"
CATALOG = "demo"

_MOST_COMMITS = 30
_FILE_SIZE = "write.target-file-size-bytes"


@dataclass(frozen=True)
class Writer:
    """What the demonstration lets a format's usual library do."""

    make: Callable[[pa.Table, int, Path, Progress], Rewritable]
    """Append rows in their order as so many files of a new table."""
    compact: Callable[[Path, int], None]
    """Join files to about this many."""
    deed: str
    """What `compact` does, for people."""
    address: Callable[[Path, int | None], "Address"]
    """Says what the command line calls the table in a folder as it is now, and at a version."""
    library: str
    """The package that it needs."""

    def check(self) -> None:
        """Refuse to begin where the library isn't installed."""
        if find_spec(self.library) is None:
            raise ZonalError(f"The demonstration writes a table with {self.library}. Run: pip install 'zonal[demo]'")


@dataclass(frozen=True)
class Address:
    """How a command names a table."""

    now: str
    then: str
    """An older version."""
    options: tuple[str, ...] = ()
    """What every command needs besides."""


def make_delta(table: pa.Table, files: int, folder: Path, report: Progress) -> Rewritable:
    """Append the rows in their order, one file per commit."""
    from deltalake import DeltaTable as Writer  # noqa: PLC0415 - slow to import
    from deltalake import write_deltalake  # noqa: PLC0415

    from zonal.tables.delta.table import DeltaTable  # noqa: PLC0415

    with _errors("Delta", "The rows can't be written as a table of"):
        writer = Writer.create(str(folder), table.schema)
        for done, part in enumerate(_parts(table, files)):
            report(Step("appending files", done=done, total=files))
            write_deltalake(writer, part, mode="append")
    return DeltaTable(str(folder))


def compact_delta(folder: Path, files: int) -> None:
    """Let delta-rs pack the files into larger ones, as its `optimize.compact` does."""
    from deltalake import DeltaTable as Writer  # noqa: PLC0415 - slow to import
    from deltalake import WriterProperties  # noqa: PLC0415

    with _errors("Delta", "delta-rs can't compact the table of"):
        writer = Writer(str(folder))
        sizes = pa.table(writer.get_add_actions())["size_bytes"].to_pylist()
        # By itself it compacts with another codec than it appends with, and sizes before and after wouldn't compare.
        same = WriterProperties(compression="SNAPPY")
        writer.optimize.compact(target_size=max(sum(sizes) // files, 1), writer_properties=same)


def make_iceberg(table: pa.Table, files: int, folder: Path, report: Progress) -> Rewritable:
    """Append the rows in their order, several files per commit, in a SQLite catalog beside them.

    PyIceberg takes longer for a commit than for its files.
    """
    from zonal.tables.iceberg.table import IcebergTable  # noqa: PLC0415 - slow to import

    commits = -(-files // -(-files // _MOST_COMMITS))
    with _errors("Iceberg", "The rows can't be written as a table of"):
        catalog = _catalog(folder)
        catalog.create_namespace(IDENTIFIER.partition(".")[0])
        size = {_FILE_SIZE: _memory_size(table, files)}
        writer = catalog.create_table(IDENTIFIER, schema=table.schema, properties=size)
        for done, part in enumerate(_parts(table, commits)):
            report(Step("appending files", done=done, total=commits))
            writer.append(part)
    return IcebergTable(IDENTIFIER, catalog.load_table(IDENTIFIER))


def compact_iceberg(folder: Path, files: int) -> None:
    """Let PyIceberg, which has no compaction, read the files by their sizes and overwrite them with larger ones."""
    from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415 - slow to import
    from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415

    with _errors("Iceberg", "PyIceberg can't overwrite the table of"):
        writer = _catalog(folder).load_table(IDENTIFIER)
        tasks = sorted(writer.scan().plan_files(), key=lambda task: -task.file.file_size_in_bytes)
        rows = ArrowScan(writer.metadata, writer.io, writer.schema(), AlwaysTrue()).to_table(tasks)
        with writer.transaction() as change:
            change.set_properties({_FILE_SIZE: _memory_size(rows, files)})
            change.overwrite(rows)


def _delta_address(folder: Path, version: int | None) -> Address:
    return Address(str(folder), f"delta:{folder}@{version}")


def _iceberg_address(folder: Path, version: int | None) -> Address:
    options = ("--catalog", CATALOG, "--storage-option", f"uri={catalog_uri(folder)}")
    return Address(f"iceberg:{IDENTIFIER}", f"iceberg:{IDENTIFIER}@{version}", options)


WRITERS = {
    "delta": Writer(
        make_delta, compact_delta, "delta-rs compacts the table (optimize.compact)", _delta_address, "deltalake"
    ),
    "iceberg": Writer(
        make_iceberg,
        compact_iceberg,
        "PyIceberg, which has no compaction, reads the files by their sizes and overwrites the table with larger ones",
        _iceberg_address,
        "pyiceberg",
    ),
}


def catalog_uri(folder: Path) -> str:
    """Return the address of the catalog of an Iceberg table in this folder."""
    return f"sqlite:///{folder / 'catalog.db'}"


def _catalog(folder: Path) -> "SqlCatalog":
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - slow to import

    return SqlCatalog(CATALOG, uri=catalog_uri(folder), warehouse=str(folder.resolve()))


def _memory_size(table: pa.Table, files: int) -> str:
    """Return a file's target size as PyIceberg counts it, in memory; a little more, as parts are never quite even."""
    return str(max(int(1.02 * table.nbytes / files), 1))


def _parts(table: pa.Table, count: int) -> Iterator[pa.Table]:
    for number in range(count):
        start, end = (table.num_rows * edge // count for edge in (number, number + 1))
        yield table.slice(start, end - start)


@contextmanager
def _errors(form: str, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # both writers bring errors of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise TableError(f"{what} {form}: {quoted(reason, limit=300)}") from error
