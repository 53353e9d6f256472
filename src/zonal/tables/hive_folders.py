"""Name folders `key=value`, from which Hive, Spark's Parquet and Polars read the values of partitions."""

import re
from collections.abc import Mapping

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
LONGEST_NAME = 255
"""Bytes of a name that every file system takes."""
_SPECIAL = re.compile(rf"""[\x00-\x1f"#%'*/:=?\\\x7f{{\[\]^]|^_(?={HIVE_NULL[1:]}$)""")
"""Characters that Spark escapes (`ExternalCatalogUtils`), and the first one of a text that would be read as null."""


def hive_folders(values: Mapping[str, str | None], *, empty: str = HIVE_NULL, plain_keys: bool = False) -> str | None:
    """Return the folders of a partition, `key=value/key=value`; None if a name is too long for a file system.

    An empty text is written as `empty`, by default as null, as Hive reads it. With `plain_keys` only characters that a
    folder's name can't hold are escaped in column names: Polars looks for the names as they are.

    >>> hive_folders({"region": "eu/west 1", "day": None})
    'region=eu%2Fwest 1/day=__HIVE_DEFAULT_PARTITION__'
    """
    texts = {key: HIVE_NULL if value is None else _escaped(value) or empty for key, value in values.items()}
    escaped = _name_of if plain_keys else _escaped
    names = [f"{escaped(key)}={text}" for key, text in texts.items()]
    return None if any(len(name.encode()) > LONGEST_NAME for name in names) else "/".join(names)


def _name_of(key: str) -> str:
    return re.sub(r"[\x00-\x1f/=\x7f]", lambda match: f"%{ord(match[0]):02X}", key)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", text)


def is_hidden(inside: str) -> bool:
    """Tell whether Spark and Hive ignore a path because of a name in it; `_key=value` is a partition nevertheless."""
    return any(name.startswith(".") or (name.startswith("_") and "=" not in name) for name in inside.split("/") if name)
