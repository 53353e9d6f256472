"""What tables are called on the command line: a path or a name, behind the name of its format and a colon."""

FORMATS = ("parquet", "delta", "iceberg")


def split_format(name: str) -> tuple[str, str]:
    """Return the format that a name begins with, and the rest; an empty format where it begins with none.

    >>> split_format("delta:/lake/events"), split_format("s3://lake/events"), split_format("delta:")
    (('delta', '/lake/events'), ('', 's3://lake/events'), ('', 'delta:'))
    """
    kind, _, rest = name.partition(":")
    return (kind, rest) if kind in FORMATS and rest else ("", name)


def is_in_catalog(name: str) -> bool:
    """Tell whether a name is looked up in a catalog, instead of being a path.

    >>> is_in_catalog("iceberg:shop.orders"), is_in_catalog("iceberg:orders/v3.metadata.json"), is_in_catalog("orders")
    (True, False, False)
    """
    return split_format(name)[0] == "iceberg" and ".metadata.json" not in name


def takes_catalog_options(name: str) -> bool:
    """Tell whether options of a catalog may be meant for the table of this name."""
    return name.startswith("iceberg:")


def full_name(name: str, table_format: str) -> str:
    """Return what the command line calls a table that an adapter calls `name`: Iceberg's need their prefix.

    >>> full_name("shop.orders", "iceberg"), full_name("/lake/events", "delta")
    ('iceberg:shop.orders', '/lake/events')
    """
    return f"iceberg:{name}" if table_format == "iceberg" and not name.startswith("iceberg:") else name


def is_only_copied(table_format: str) -> bool:
    """Tell whether no table of a format can be rewritten in place: plain Parquet has no atomic commit."""
    return table_format == "parquet"
