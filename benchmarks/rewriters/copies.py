"""Make fresh tables of each format from copies of the same files."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import convert_to_deltalake

from zonal import open_table
from zonal.tables.protocol import Table

CATALOG = "ice"
NAMESPACE = "bench"
TABLE = f"{NAMESPACE}.rows"


def copy(format_: str, files: Sequence[Path], folder: Path) -> None:
    """Make a table of copies of these files below an empty folder."""
    {"parquet": _parquet, "delta": _delta, "iceberg": _iceberg}[format_](files, folder)


def table_folder(folder: Path) -> Path:
    """Return the folder of a Parquet or Delta table."""
    return folder / "table"


def result_folder(folder: Path) -> Path:
    """Return the folder for the files that replace a table of plain Parquet."""
    return folder / "rewritten"


def catalog_properties(folder: Path) -> dict[str, str]:
    """Return PyIceberg's properties of the table's catalog, which Java's JDBC catalog shares."""
    return {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder / 'warehouse'}"}


def opened(format_: str, folder: Path) -> Table:
    """Open a table, fresh or rewritten, with zonal."""
    if format_ == "iceberg":
        return open_table(f"iceberg:{TABLE}", catalog=CATALOG, storage_options=catalog_properties(folder))
    return open_table(f"{format_}:{table_folder(folder)}")


def _parquet(files: Sequence[Path], folder: Path) -> None:
    table_folder(folder).mkdir(parents=True)
    for file in files:
        shutil.copy(file, table_folder(folder))


def _delta(files: Sequence[Path], folder: Path) -> None:
    _parquet(files, folder)
    convert_to_deltalake(table_folder(folder))


def _iceberg(files: Sequence[Path], folder: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - takes most of a second, and few processes need it

    catalog = SqlCatalog(CATALOG, **catalog_properties(folder))
    catalog.create_namespace(NAMESPACE)
    table = catalog.create_table(TABLE, schema=pq.read_schema(files[0]))
    data = folder / "warehouse" / "data"
    data.mkdir(parents=True)
    table.add_files([f"file://{shutil.copy(file, data)}" for file in files])
