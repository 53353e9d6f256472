"""Tables as their usual writers make them: Delta by deltalake, Iceberg by PyIceberg, appended file after file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.tables.table import Rewritable

IDENTIFIER = "demo.telemetry"
CATALOG = "demo"

Report = Callable[[int, int], None]
"""Hears how many of how many appends are done."""

_MOST_COMMITS = 30


def make_delta(table: pa.Table, files: int, folder: Path, report: Report) -> Rewritable:
    """Append the rows in their order, a file a commit."""
    from deltalake import DeltaTable as Writer  # noqa: PLC0415 - slow to import
    from deltalake import write_deltalake  # noqa: PLC0415

    from zonal.tables.delta import DeltaTable  # noqa: PLC0415

    with _errors("Delta"):
        writer = Writer.create(str(folder), table.schema)
        for done, part in enumerate(_parts(table, files)):
            report(done, files)
            write_deltalake(writer, part, mode="append")
    return DeltaTable(str(folder))


def make_iceberg(table: pa.Table, files: int, folder: Path, report: Report) -> Rewritable:
    """Append the rows in their order, some files a commit, in a SQLite catalog beside them.

    A commit of PyIceberg takes longer than its files.
    """
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - slow to import

    from zonal.tables.iceberg import IcebergTable  # noqa: PLC0415

    commits = -(-files // -(-files // _MOST_COMMITS))
    with _errors("Iceberg"):
        catalog = SqlCatalog(CATALOG, uri=catalog_uri(folder), warehouse=str(folder.resolve()))
        catalog.create_namespace(IDENTIFIER.partition(".")[0])
        # PyIceberg means the size in memory, of which the parts of a commit are never quite the same.
        size = {"write.target-file-size-bytes": str(int(1.02 * table.nbytes / files))}
        writer = catalog.create_table(IDENTIFIER, schema=table.schema, properties=size)
        for done, part in enumerate(_parts(table, commits)):
            report(done, commits)
            writer.append(part)
    return IcebergTable(IDENTIFIER, catalog.load_table(IDENTIFIER))


def catalog_uri(folder: Path) -> str:
    """Return the address of the catalog of an Iceberg table in this folder."""
    return f"sqlite:///{folder / 'catalog.db'}"


def _parts(table: pa.Table, count: int) -> Iterator[pa.Table]:
    for number in range(count):
        start, end = (table.num_rows * edge // count for edge in (number, number + 1))
        yield table.slice(start, end - start)


@contextmanager
def _errors(form: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # both writers bring errors of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise TableError(f"The rows can't be written as a table of {form}: {quoted(reason, limit=300)}") from error
