"""`list_tables`: what a catalog has."""

from collections.abc import Mapping

from zonal.tables.registry import tables_in


def list_tables(catalog: str | None = None, *, storage_options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of a catalog's Iceberg tables, as `open_table` and the other verbs take them.

    Arguments:
        catalog: as PyIceberg is configured for it; without, its default, or the only one that is configured.
        storage_options: properties of the catalog.

    Example:
        >>> zonal.list_tables("lake")  # doctest: +SKIP
        ('iceberg:lake.sales.orders', 'iceberg:lake.web.clicks')
    """
    return tables_in(catalog, storage_options or {})
