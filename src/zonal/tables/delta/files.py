"""Build a snapshot's `Files` from a Delta log's `add` actions, with partitions and bounds."""

import re
from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import TableError, quoted
from zonal.snapshot import UNKNOWN, Files, LazyBounds
from zonal.tables.delta.adds import Adds
from zonal.tables.delta.indexed import is_indexed
from zonal.tables.delta.partition_values import partition_bounds
from zonal.tables.delta.schema import DeltaLeaf, Steps
from zonal.tables.delta.stats import Stats, bounds, counts, several_bounds
from zonal.tables.hive_folders import HIVE_NULL
from zonal.values.arrays import Int64Array


def files_of(
    adds: Sequence[Adds], leaves: Sequence[DeltaLeaf], partitioning: Sequence[str], used: Collection[Steps]
) -> tuple[Files, int]:
    """Return the files, with bounds of the leaves in `used`, and how many files have a clustering provider."""
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
            {
                leaf.name: partial(bounds, leaf, sources, totals)
                for leaf in leaves
                if leaf.name not in partitioning and is_indexed(leaf.steps, used)
            },
            lambda names: several_bounds([by_name[name] for name in names], sources, totals),
        ),
        partition_bounds=LazyBounds(
            {
                name: partial(partition_bounds, texts, by_name[name].type, totals)
                for name, texts in zip(partitioning, keys, strict=True)
            }
        ),
    )
    return files, len(providers) - providers.null_count


_KINDS = {"size": pa.int64(), "deleted": pa.int64(), "version": pa.int64(), "stats": pa.large_string()}


def _array(rows: Sequence[pa.Table], name: str) -> pa.Array:
    chunks = [chunk for part in rows for chunk in part[name].chunks]
    return pa.concat_arrays([pa.nulls(0, _KINDS.get(name, pa.string())), *chunks])


def _numbers(rows: Sequence[pa.Table], name: str) -> Int64Array:
    numbers: Int64Array = pc.fill_null(_array(rows, name), UNKNOWN).to_numpy(zero_copy_only=False)
    return numbers


def _parsed(source: Adds) -> pa.Array | None:
    return None if source.parsed is None else pa.concat_arrays(source.parsed.chunks)


# --- partitions ------------------------------------------------------------------------------------------------------


def _partition_texts(rows: Sequence[pa.Table], leaf: DeltaLeaf) -> pa.DictionaryArray:
    """Return each file's value of a partition column, as text.

    An empty text is null for every type. Some readers of string columns disagree, so there it stays a partition of its
    own: its rows and those of null never go to the same file.
    """
    chunks = [chunk for part in rows for chunk in part["values"].chunks]
    values = [pc.map_lookup(chunk, leaf.steps[-1], "last") for chunk in chunks]
    texts = pa.concat_arrays([pa.nulls(0, pa.string()), *values])
    return pc.dictionary_encode(
        texts if pa.types.is_string(leaf.type) else pc.if_else(pc.equal(texts, ""), None, texts)
    )


def _partitions(
    names: Sequence[str], keys: Sequence[pa.DictionaryArray], count: int
) -> tuple[Int64Array, tuple[str, ...]]:
    """Number the combinations of partition values, in the order of their labels."""
    if not names:
        return np.zeros(count, np.int64), ("",)
    columns = []
    for name, key in zip(names, keys, strict=True):
        labels = pa.array([f"{name}={_label(text)}" for text in [*key.dictionary.to_pylist(), None]])
        columns.append(labels.take(pc.fill_null(key.indices, len(labels) - 1)))
    encoded = pc.dictionary_encode(pc.binary_join_element_wise(*columns, "/"))
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[encoded.indices.to_numpy(zero_copy_only=False)], tuple(encoded.dictionary.take(order).to_pylist())


def _label(text: str | None) -> str:
    """Write a value so that labels of different partitions differ: `/`, `=`, `%` and control characters escaped."""
    special = rf"[\x00-\x1f\x7f%/=]|^_(?={HIVE_NULL[1:]}$)"
    return HIVE_NULL if text is None else re.sub(special, lambda match: f"%{ord(match[0]):02X}", text)
