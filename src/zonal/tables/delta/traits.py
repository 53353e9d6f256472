"""What others must know of Delta tables."""

from collections.abc import Mapping

from zonal.snapshot import Traits
from zonal.tables.delta.indexed import INDEXED_COLUMNS, INDEXED_COUNT, STATS_COLUMNS


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
    )
