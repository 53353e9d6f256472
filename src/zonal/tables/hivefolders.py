"""Folders named `key=value`, from which Hive, Spark's Parquet and Polars take the values of partitions."""

import re
from collections.abc import Mapping

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
LONGEST_NAME = 255
"""Bytes of a name that every file system takes."""
_SPECIAL = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
"""What Spark escapes (`ExternalCatalogUtils`)."""


def hive_folders(values: Mapping[str, str | None]) -> str | None:
    """Return the folders of a partition, `key=value/key=value`; None if a name is too long for a file system.

    A null and an empty text, which would be no name, are Hive's word for null.

    >>> hive_folders({"region": "eu/west 1", "day": None})
    'region=eu%2Fwest 1/day=__HIVE_DEFAULT_PARTITION__'
    """
    names = [f"{_escaped(key)}={_escaped(value) if value else HIVE_NULL}" for key, value in values.items()]
    return None if any(len(name.encode()) > LONGEST_NAME for name in names) else "/".join(names)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)
