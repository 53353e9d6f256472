"""`list_tables`: what a catalog has."""

from collections.abc import Mapping

from zonal.storage.options import check_options
from zonal.storage.secrets import revealed


def list_tables(catalog: str | None = None, *, storage_options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of a catalog's Iceberg tables, as `open_table` and the other verbs take them.

    Arguments:
        catalog: as PyIceberg is configured for it; without, its default, or the only one that is configured.
        storage_options: properties of the catalog.

    Example:
        >>> zonal.list_tables("lake")  # doctest: +SKIP
        ('iceberg:lake.sales.orders', 'iceberg:lake.web.clicks')
    """
    from zonal.tables.iceberg.catalogs import tables_of  # noqa: PLC0415 - slow to import

    properties = revealed(storage_options or {})
    check_options(properties, iceberg=True)
    return tables_of(catalog, properties)
