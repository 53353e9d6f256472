"""Open a table by its name: a path, or `parquet:`, `delta:` or `iceberg:` and what stands behind it."""

import re
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path

from zonal.arguments import check_arguments
from zonal.errors import TableError, quoted
from zonal.snapshot import Snapshot
from zonal.storage.location import is_uri, refuse_other_names, shown
from zonal.storage.options import check_options
from zonal.storage.secrets import revealed
from zonal.tables.delta.create import DeltaDestination
from zonal.tables.delta.table import DeltaTable, is_delta
from zonal.tables.names import split_format
from zonal.tables.parquet.copy import ParquetDestination
from zonal.tables.parquet.folder import ParquetTable
from zonal.tables.protocol import Destination, Table
from zonal.values.progress import Progress

_VERSION = re.compile(r"(?P<name>.+)@(?P<version>[^@/\\]+)")


def open_table(
    name: str,
    *,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    catalog_options: bool = False,
) -> Table:
    """Open a table for reading; what it is, is seen from what is there.

    A path that belongs to a table of a format that isn't read so is refused; with `parquet:` all Parquet files there
    are the table.

    Arguments:
        name: `PATH`, `parquet:PATH`, `delta:PATH[@VERSION]`, `iceberg:NAMESPACE.TABLE[@SNAPSHOT_OR_BRANCH]` in a
            PyIceberg catalog, or an Iceberg `….metadata.json`.
        catalog: of an Iceberg table; without, PyIceberg's default, or the only one that is configured.
        storage_options: of the storage, or of the catalog. Options that nothing would use are refused: those of
            catalogs, too, unless the table is in one.
        catalog_options: options of catalogs are for another table, and fine.

    Example:
        >>> table = zonal.open_table("events")
        >>> len(table.snapshot().files), table.snapshot().format
        (4, 'parquet')
    """
    check_arguments(open_table, locals())
    try:
        name.encode()
    except UnicodeEncodeError:
        raise TableError(f"{quoted(name)} is not text in UTF-8, as names of tables are.") from None
    kind, rest = split_format(name)
    options = revealed(storage_options or {})
    location, version = _split_version(rest)
    iceberg = kind == "iceberg" or location.endswith(".metadata.json")
    check_options(options, iceberg=iceberg or catalog_options)
    if iceberg:
        return _iceberg(location, version, catalog, options)
    if kind == "delta" or (not kind and is_delta(location, storage_options=options)):
        return DeltaTable(location, version=_number(name, version), storage_options=options)
    if version is not None:
        raise TableError(f"{quoted(name)} asks for version {quoted(version)}, but plain Parquet has no versions.")
    if not kind and (newest := _newest_metadata(location)):
        raise TableError(
            f"{quoted(name)} is the folder of an Iceberg table. Name it in its catalog, as in iceberg:namespace.table, "
            f"or give its metadata file, such as {newest}."
        )
    return ParquetTable(location, storage_options=options, as_is=bool(kind))


def table_of(
    table: "Table | str | PathLike[str]",
    *,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    catalog_options: bool = False,
) -> Table:
    """Open a table by its name or path; one that is open already stays so."""
    if isinstance(table, PathLike):
        table = str(fspath(table))
    if not isinstance(table, str):
        if not callable(getattr(table, "snapshot", None)):
            raise TableError(f"{quoted(repr(table))} is no table: give its path or name, or what `open_table` returns.")
        return table
    return open_table(table, catalog=catalog, storage_options=storage_options, catalog_options=catalog_options)


def open_destination(
    name: str, *, catalog: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Destination:
    """Name a table that doesn't exist yet: `delta:PATH`, `parquet:PATH` or `iceberg:NAMESPACE.TABLE`."""
    kind, rest = split_format(name)
    options = revealed(storage_options or {})
    check_options(options, iceberg=True)  # what is copied may be in a catalog
    if kind == "delta":
        return DeltaDestination(rest, storage_options=options)
    if kind == "parquet":
        return ParquetDestination(rest, storage_options=options)
    if kind == "iceberg":
        from zonal.tables.iceberg.create import IcebergDestination  # noqa: PLC0415 - slow to import

        return IcebergDestination(rest, catalog=catalog, catalog_properties=options)
    raise TableError(
        f"Say which format {quoted(name, limit=200)} shall have: delta:PATH, parquet:PATH or iceberg:NAMESPACE.TABLE."
    )


def read_snapshot(table: Table, progress: Progress | None = None) -> Snapshot:
    """Read a table's metadata; of a Parquet folder, where that means every footer, `progress` hears how far it is."""
    return table.snapshot(progress) if isinstance(table, ParquetTable) else table.snapshot()


def unpinned(name: str) -> str:
    """Return a table's name without the version or branch behind it: that can be rewritten.

    >>> unpinned("iceberg:shop.orders@7"), unpinned("delta:/lake/events")
    ('iceberg:shop.orders', 'delta:/lake/events')
    """
    kind, rest = split_format(name)
    bare = _split_version(rest)[0]
    return f"{kind}:{bare}" if kind else bare


def _iceberg(location: str, version: str | None, catalog: str | None, options: Mapping[str, str]) -> Table:
    from zonal.tables.iceberg.table import IcebergTable  # noqa: PLC0415 - slow to import, and only needed here

    at = int(version) if version is not None and version.isdecimal() else version
    if location.endswith(".metadata.json"):
        refuse_other_names(location)
        return IcebergTable.from_metadata(location, version=at, properties=options)
    if is_uri(location):
        raise TableError(
            f"{shown(location)} is no name in a catalog. Name the table as iceberg:NAMESPACE.TABLE, or give its newest "
            "….metadata.json file."
        )
    return IcebergTable.from_catalog(location, catalog=catalog, catalog_properties=options, version=at)


def _split_version(text: str) -> tuple[str, str | None]:
    """Cut `@VERSION` off, unless a file or folder has the whole name."""
    match = _VERSION.fullmatch(text)
    if match is None or ("://" not in text and Path(text).exists()):
        return text, None
    return match["name"], match["version"]


def _number(name: str, version: str | None) -> int | None:
    if version is None:
        return None
    if not version.isdecimal():
        raise TableError(f"{quoted(name)} asks for version {quoted(version)}; versions of a Delta table are numbers.")
    return int(version)


def _newest_metadata(location: str) -> str | None:
    folder = Path(location) / "metadata"
    if "://" in location or not folder.is_dir():
        return None
    found = sorted(folder.glob("*.metadata.json"), key=lambda path: path.stat().st_mtime)
    return str(found[-1]) if found else None


def tables_in(catalog: str | None, storage_options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of a catalog's tables."""
    from zonal.tables.iceberg.catalogs import tables_of  # noqa: PLC0415 - slow to import

    properties = revealed(storage_options)
    check_options(properties, iceberg=True)
    return tables_of(catalog, properties)
