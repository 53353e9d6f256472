"""What a Delta table tells of its own rules and limits."""

import re
from collections.abc import Mapping

from zonal.layouts.layout import Encodings
from zonal.snapshot import SizeProperty, Traits
from zonal.tables.delta.indexed import INDEXED_COLUMNS, INDEXED_COUNT, STATS_COLUMNS

FILE_SIZE = "delta.targetFileSize"
ENCODINGS: Encodings = "modern"
"""What readers of Delta tables have known for years: Spark since 3.3."""
_UNITS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def traits_of(location: str, properties: Mapping[str, str]) -> Traits:
    """Describe the table at a location with these properties."""

    def bounds_advice(column: str) -> str:
        named = properties.get(STATS_COLUMNS)
        if named is not None:
            return f"Set the table property '{STATS_COLUMNS}' = '{named},{column}', and rewrite the files."
        count = properties.get(INDEXED_COUNT, str(INDEXED_COLUMNS))
        return (
            f"Delta keeps bounds of the first {count} columns. Set the table property '{STATS_COLUMNS}' = "
            f"'…,{column}' (all the columns that queries filter), or raise '{INDEXED_COUNT}', and rewrite the files."
        )

    place = location.replace("`", "``")
    return Traits(
        version_word="version",
        bounds_advice=bounds_advice,
        old_files_until=f"VACUUM delta.`{place}` removes them, after 7 days or delta.deletedFileRetentionDuration",
        file_size=_file_size(properties),
    )


def _file_size(properties: Mapping[str, str]) -> SizeProperty | None:
    """Read the property: bytes, or a text such as `100mb`, whose units are powers of 1024, as Spark reads them."""
    text = properties.get(FILE_SIZE)
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,18})\s*([bkmgt]?)b?", text.strip().lower())
    size = int(match[1]) * 1024 ** _UNITS[match[2]] if match else 0
    return SizeProperty(FILE_SIZE, size if 0 < size < 2**63 else None)
