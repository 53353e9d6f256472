"""Delta tables: where they are stored, which of them can be read, and one version as a snapshot."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from zonal.errors import TableError, quoted
from zonal.files import UNKNOWN, Bounds, Files, Ints, LazyBounds, Physical, Snapshot
from zonal.storage import Storage
from zonal.tables.deltacheckpoint import Adds
from zonal.tables.deltalog import Log, Metadata, Protocol, replay
from zonal.tables.deltaschema import Leaf, read_schema
from zonal.tables.deltastats import Counts, Stats, bounds, cast_or_null, counts, several_bounds, timestamps
from zonal.tables.table import recorded_layout

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

# Reader features that change nothing about how the log, the schema and the statistics are read here.
_SHREDDED = frozenset(("variantShredding", "variantShredding-preview"))
READABLE = _SHREDDED | {
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
    *("typeWidening", "typeWidening-preview", "variantType", "variantType-preview"),
}
# Features that a rewrite of unchanged rows can keep. A shredded variant would have to be put together first.
REWRITABLE = (READABLE - _SHREDDED) | {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "allowColumnDefaults"),
    *("identityColumns", "rowTracking", "domainMetadata", "clustering", "checkpointProtection"),
    *("inCommitTimestamp", "inCommitTimestamp-preview"),
}


def is_delta(location: str, *, storage_options: Mapping[str, str] | None = None) -> bool:
    """Tell whether there is a `_delta_log` folder at the location."""
    storage = Storage(location, storage_options or {})
    filesystem, path = storage.locate(f"{storage.root}/_delta_log")
    try:
        kind = filesystem.get_file_info(path).type
    except OSError as error:
        raise TableError(f"Can't look for a table at {quoted(storage.root, limit=300)}: {error}") from None
    return bool(kind == pa.fs.FileType.Directory)


class DeltaTable:
    """A Delta table, by its folder; the newest version, or the one asked for."""

    def __init__(
        self, location: str, *, version: int | None = None, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self._storage = Storage(location, storage_options or {})
        self._version = version
        self.name = self._storage.root

    def snapshot(self) -> Snapshot:
        """Read one version from the log alone.

        What the log doesn't say is UNKNOWN or null; a log that can't be read completely raises a `TableError`.
        """
        log = Log.of(*self._storage.locate(f"{self._storage.root}/_delta_log"))
        state = replay(log, self._storage.resolve, version=self._version)
        _refuse_unreadable(state.protocol, self.name)
        mapping = state.metadata.configuration.get("delta.columnMapping.mode", "none")
        schema, leaves = read_schema(state.metadata.schema, mapping=mapping)
        layout, problems = recorded_layout(state.metadata.configuration)
        files, providers = _files(state.adds, leaves, state.metadata.partitioning)
        marked = {"clusteringProvider": str(providers)} if providers else {}
        return Snapshot(
            name=self.name,
            format="delta",
            location=self._storage.root,
            version=state.version,
            time=state.time,
            schema=schema,
            partitioning=state.metadata.partitioning,
            files=files,
            # Files may hold partition columns, too, but the log's values count: '' in a file is null in the log.
            physical={
                leaf.name: Physical(".".join(leaf.steps), leaf.field_id)
                for leaf in leaves
                if leaf.name not in state.metadata.partitioning
            },
            layout=layout,
            properties={**state.metadata.configuration, **marked},
            commits=state.commits,
            blockers=_blockers(state.protocol, state.metadata),
            problems=problems,
        )

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""
        try:
            filesystem, inner = self._storage.locate(path)
            return filesystem.open_input_file(inner)
        except OSError as error:
            raise TableError(f"Can't open {quoted(path, limit=300)} of {quoted(self.name)}: {error}") from None


def _refuse_unreadable(protocol: Protocol, name: str) -> None:
    if protocol.reader > 3:
        raise TableError(
            f"{quoted(name, limit=300)} asks for Delta reader version {protocol.reader}; zonal reads up to 3."
        )
    if unknown := sorted(set(protocol.reader_features) - READABLE):
        names = ", ".join(quoted(feature) for feature in unknown)
        raise TableError(
            f"{quoted(name, limit=300)} can't be read: zonal doesn't know its Delta reader feature {names}."
        )


def _blockers(protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """Name what a rewrite could not keep; writer versions up to 6 imply known features only."""
    features = sorted({*protocol.reader_features, *protocol.writer_features} - REWRITABLE)
    found = [f"table feature {feature}" for feature in features]
    if protocol.writer > 7:
        found.append(f"writer version {protocol.writer}")
    settings = ("delta.universalFormat.enabledFormats", "delta.coordinatedCommits.commitCoordinator-preview")
    return (*found, *(f"table property {name}" for name in settings if metadata.configuration.get(name)))


# --- files -----------------------------------------------------------------------------------------------------------


def _files(adds: Sequence[Adds], leaves: Sequence[Leaf], partitioning: Sequence[str]) -> tuple[Files, int]:
    """Return the files, and how many of them carry a clustering provider."""
    rows = [source.rows for source in adds]
    sources = [Stats(_array([part], "stats"), _parsed(source)) for part, source in zip(rows, adds, strict=True)]
    totals = counts(sources)
    by_name = {leaf.name: leaf for leaf in leaves}
    if missing := [name for name in partitioning if name not in by_name]:
        raise TableError(f"Partition column {quoted(missing[0])} is not in the table's schema.")
    keys = [_partition_texts(rows, by_name[name]) for name in partitioning]
    partition, partitions = _partitions(partitioning, keys, len(totals.rows))
    vectors = _array(rows, "vector")
    layouts, providers = _array(rows, "layout"), _array(rows, "provider")
    files = Files(
        paths=_array(rows, "path"),
        sizes=_numbers(rows, "size"),
        rows=totals.rows,
        deleted=_numbers(rows, "deleted"),
        delete_files=pc.is_valid(vectors).to_numpy(zero_copy_only=False).astype(np.int64),
        added_by=_numbers(rows, "version"),
        layout_ids=layouts,
        partition=partition,
        partitions=partitions,
        bounds=LazyBounds(
            {leaf.name: partial(bounds, leaf, sources, totals) for leaf in leaves if leaf.name not in partitioning},
            lambda names: several_bounds([by_name[name] for name in names], sources, totals),
        ),
        partition_bounds=LazyBounds(
            {
                name: partial(_partition_bounds, texts, by_name[name].type, totals)
                for name, texts in zip(partitioning, keys, strict=True)
            }
        ),
    )
    return files, len(providers) - providers.null_count


_KINDS = {"size": pa.int64(), "deleted": pa.int64(), "version": pa.int64(), "stats": pa.large_string()}


def _array(rows: Sequence[pa.Table], name: str) -> pa.Array:
    chunks = [chunk for part in rows for chunk in part[name].chunks]
    return pa.concat_arrays([pa.nulls(0, _KINDS.get(name, pa.string())), *chunks])


def _numbers(rows: Sequence[pa.Table], name: str) -> Ints:
    numbers: Ints = pc.fill_null(_array(rows, name), UNKNOWN).to_numpy(zero_copy_only=False)
    return numbers


def _parsed(source: Adds) -> pa.Array | None:
    return None if source.parsed is None else pa.concat_arrays(source.parsed.chunks)


# --- partitions ------------------------------------------------------------------------------------------------------


def _partition_texts(rows: Sequence[pa.Table], leaf: Leaf) -> pa.DictionaryArray:
    """Return each file's value of a partition column, as written; an empty text is null for every type."""
    chunks = [chunk for part in rows for chunk in part["values"].chunks]
    found = [pc.map_lookup(chunk, leaf.steps[-1], "last") for chunk in chunks]
    texts = pa.concat_arrays([pa.nulls(0, pa.string()), *found])
    return pc.dictionary_encode(pc.if_else(pc.equal(texts, ""), None, texts))


def _partitions(names: Sequence[str], keys: Sequence[pa.DictionaryArray], count: int) -> tuple[Ints, tuple[str, ...]]:
    """Number the combinations of partition values, in the order of their labels."""
    if not names:
        return np.zeros(count, np.int64), ("",)
    columns = []
    for name, key in zip(names, keys, strict=True):
        labels = pa.array([f"{name}={_label(text)}" for text in [*key.dictionary.to_pylist(), None]])
        columns.append(labels.take(pc.fill_null(key.indices, len(labels) - 1)))
    found = pc.dictionary_encode(pc.binary_join_element_wise(*columns, "/"))
    order = pc.array_sort_indices(found.dictionary).to_numpy()
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[found.indices.to_numpy(zero_copy_only=False)], tuple(found.dictionary.take(order).to_pylist())


def _label(text: str | None) -> str:
    """Write a value so that labels of different partitions differ: `/`, `=`, `%` and control characters escaped."""
    return HIVE_NULL if text is None else re.sub(r"[\x00-\x1f\x7f%/=]", lambda found: f"%{ord(found[0]):02X}", text)


def _partition_bounds(key: pa.DictionaryArray, kind: pa.DataType, totals: Counts) -> Bounds:
    """Give every file its partition value as both bounds; a value that can't be read is unknown, but not null."""
    texts = key.dictionary.cast(pa.large_string())
    lower, upper = (_partition_values(texts, kind, side) for side in (-1, 1))
    nans = np.zeros(len(key), np.int64)
    if pa.types.is_floating(kind):
        undefined = pc.is_nan(lower).take(key.indices)
        nans = np.where(pc.fill_null(undefined, False).to_numpy(zero_copy_only=False), totals.rows, 0)
        lower = upper = pc.if_else(pc.is_nan(lower), None, lower)
    nulls = np.where(pc.is_null(key.indices).to_numpy(zero_copy_only=False), totals.rows, 0)
    return Bounds(lower.take(key.indices), upper.take(key.indices), nulls, nans)


def _partition_values(texts: pa.Array, kind: pa.DataType, side: int) -> pa.Array:
    """Read values in the forms of "Partition Value Serialization"."""
    if pa.types.is_string(kind):
        return texts.cast(pa.large_binary())
    if pa.types.is_timestamp(kind):
        return timestamps(texts, kind, side)
    if pa.types.is_binary(kind):
        return pa.array([_escaped_bytes(text) for text in texts.to_pylist()], kind)
    return cast_or_null(texts, kind)


def _escaped_bytes(text: str) -> bytes | None:
    """Read binary that is written as `\\u0001\\u00FF` or as ASCII; writers disagree on what other characters mean."""
    if re.fullmatch(r"(\\u00[0-9a-fA-F]{2})+", text):
        return bytes(int(code, 16) for code in text.split("\\u00")[1:])
    return text.encode() if text.isascii() else None
