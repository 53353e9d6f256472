"""Find columns without bounds in files."""

from zonal.snapshot import Snapshot

_MOST_UNKNOWN = 0.5


def has_statistics(snapshot: Snapshot, column: str) -> bool:
    """Tell whether most files have bounds of a column, or only nulls in it, which need no bounds."""
    bounds = snapshot.files.bounds.get(column)
    if bounds is None:
        return False
    files = snapshot.files
    empty = (bounds.nulls >= 0) & (bounds.nulls == files.rows)
    unknown = bounds.lower.is_null().to_numpy(zero_copy_only=False) & ~empty
    return bool(unknown.sum() <= _MOST_UNKNOWN * max(len(files), 1))
