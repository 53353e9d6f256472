"""Read snapshots of Delta tables in tests."""

from support.delta_tables import field, metadata, protocol
from zonal.tables.delta.table import DeltaTable


def read(where, **options):
    return DeltaTable(str(where), **options).snapshot()


def names(snapshot):
    return sorted(path.rpartition("/")[2] for path in snapshot.files.paths.to_pylist())


def of(snapshot, column, file=0):
    """Lower bound, upper bound and nulls of one column in one file."""
    bounds = snapshot.files.bounds[column]
    return bounds.lower[file].as_py(), bounds.upper[file].as_py(), bounds.nulls[file]


HEAD = (protocol(), metadata(field("x", "long"), field("s", "string")))
