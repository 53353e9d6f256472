"""What an Iceberg table tells of its own rules and limits."""

import re
from collections.abc import Mapping

import pyarrow as pa

from zonal.snapshot import SizeProperty, Traits
from zonal.tables.iceberg.metrics import BY_COLUMN, TRUNCATED
from zonal.values.columns import find, leaf_type
from zonal.values.words import family_of

FILE_SIZE = "write.target-file-size-bytes"


def traits_of(name: str, schema: pa.Schema, properties: Mapping[str, str]) -> Traits:
    """Describe the table of a name and a schema with these properties."""

    def bounds_advice(column: str) -> str:
        is_text = family_of(leaf_type(schema, find(schema, column))) == "bytes"
        mode = f"truncate({TRUNCATED})" if is_text else "full"
        return f"Set the table property '{BY_COLUMN}{column}' = '{mode}', and rewrite the files."

    quoted = name.partition("@")[0].replace("'", "''")
    return Traits(
        version_word="snapshot",
        counts_nan=True,
        bounds_advice=bounds_advice,
        old_files_until=f"their snapshots expire: CALL CATALOG.system.expire_snapshots('{quoted}')",
        file_size=_file_size(properties),
    )


def _file_size(properties: Mapping[str, str]) -> SizeProperty | None:
    text = properties.get(FILE_SIZE)
    if text is None:
        return None
    size = int(text) if re.fullmatch(r"[0-9]{1,18}", text.strip(), re.ASCII) else 0
    return SizeProperty(FILE_SIZE, size or None)
