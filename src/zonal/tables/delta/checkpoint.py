"""Read the files that a Delta checkpoint lists, as a table with one row per file."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from zonal.errors import TableError, quoted
from zonal.snapshot import UNKNOWN
from zonal.storage import open_regular
from zonal.storage.causes import told
from zonal.tables.delta.adds import ADDS, LAYOUT_TAG, STRINGS, Adds, dumped, vector_id

_SMALL = ("protocol", "metaData", "domainMetadata", "txn", "sidecar")
_WANTED = ("path", "partitionValues", "size", "stats", "tags", "deletionVector", "clusteringProvider")
_TRACKING = ("baseRowId", "defaultRowCommitVersion")


def read_checkpoint_file(
    filesystem: pa.fs.FileSystem, path: str, resolve: Callable[[str], str]
) -> tuple[list[dict[str, Any]], Adds]:
    """Return the small actions of a checkpoint or sidecar file, and the files that it adds."""
    try:
        with open_regular(filesystem, path) as source:
            # INT96 timestamps of stats_parsed would overflow as nanoseconds.
            file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
            names = set(file.schema_arrow.names)
            small = file.read(columns=[name for name in _SMALL if name in names])
            actions: list[dict[str, Any]] = []
            for name in small.column_names:
                present = small.select([name]).filter(pc.is_valid(small[name]))
                actions += present.to_pylist(maps_as_pydicts="strict")
            return actions, _read_adds(file, resolve)
    except TableError:
        raise
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError) as error:
        raise TableError(f"The checkpoint file {quoted(path, limit=300)} can't be read: {told(error)}") from None


def _read_adds(file: pq.ParquetFile, resolve: Callable[[str], str]) -> Adds:
    schema = file.schema_arrow
    if "add" not in schema.names:
        return Adds(ADDS.empty_table(), None)
    fields = {child.name for child in schema.field("add").type}
    read = file.read(columns=[f"add.{name}" for name in (*_WANTED, *_TRACKING) if name in fields])["add"]
    live = pc.is_valid(read)
    adds = read.filter(live)

    def column(name: str, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
        return pc.struct_field(adds, name).cast(kind) if name in fields else pa.nulls(len(adds), kind)

    tags = column("tags", STRINGS)
    vectors = pc.struct_field(adds, "deletionVector") if "deletionVector" in fields else pa.nulls(len(adds))
    described = vectors.to_pylist() if vectors.null_count < len(adds) else [None] * len(adds)
    labels = tags.to_pylist(maps_as_pydicts="strict") if tags.null_count < len(adds) else [None] * len(adds)
    stats = column("stats", pa.large_string())
    logged = column("path", pa.string()).to_pylist()
    rows = {
        "path": [resolve(path) for path in logged],
        "values": column("partitionValues", STRINGS),
        "size": column("size", pa.int64()),
        "stats": stats,
        "layout": pc.map_lookup(tags, LAYOUT_TAG, "last"),
        "vector": [vector_id(descriptor) for descriptor in described],
        "deleted": [descriptor["cardinality"] if descriptor else 0 for descriptor in described],
        "version": pa.array([UNKNOWN] * len(adds), pa.int64()),
        "provider": column("clusteringProvider", pa.string()),
        "logged": logged,
        "tags": [dumped(label) for label in labels],
        "descriptor": [dumped(descriptor) for descriptor in described],
        "first_row_id": column("baseRowId", pa.int64()),
        "row_version": column("defaultRowCommitVersion", pa.int64()),
    }
    # Needed only with delta.checkpoint.writeStatsAsJson=false; otherwise it repeats the JSON and doubles the memory.
    struct = "stats_parsed" in fields and stats.null_count > 0
    parsed = pc.struct_field(file.read(columns=["add.stats_parsed"])["add"].filter(live), 0) if struct else None
    return Adds(pa.table(rows, schema=ADDS), parsed)
