"""A Parquet file's footer: its columns, its row groups and what their statistics say.

Nothing here trusts the file: a footer that contradicts itself or the file's size is a `TableError`, and statistics that
are known to be wrong, or whose order is not defined, are left out. Names of fields are those of parquet.thrift in
apache/parquet-format.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.parquet import statistics as decode
from zonal.parquet import thrift
from zonal.parquet.statistics import NOTHING, PHYSICAL, Annotation, ParquetLeaf, Range, Statistics
from zonal.parquet.thrift import binary, boolean, integer, list_of, struct, text
from zonal.snapshot import UNKNOWN, Bounds, Physical

TAIL = 64 * 1024
"""Bytes read from the end of a file; the footers of most files fit, so that one read is enough."""

Key = TypeVar("Key", int, str)

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_MARK = struct({})
_KEY_VALUE = struct({1: ("key", text), 2: ("value", text)})
_UNIT = struct({1: ("ms", _MARK), 2: ("us", _MARK), 3: ("ns", _MARK)})
_TIME = struct({1: ("utc", boolean), 2: ("unit", _UNIT)})
_LOGICAL = struct({
    1: ("STRING", _MARK), 2: ("MAP", _MARK), 3: ("LIST", _MARK), 4: ("ENUM", _MARK),
    5: ("DECIMAL", struct({1: ("scale", integer), 2: ("precision", integer)})), 6: ("DATE", _MARK), 7: ("TIME", _TIME),
    8: ("TIMESTAMP", _TIME), 10: ("INTEGER", struct({1: ("bits", integer), 2: ("signed", boolean)})),
    11: ("UNKNOWN", _MARK), 12: ("JSON", _MARK), 13: ("BSON", _MARK), 14: ("UUID", _MARK), 15: ("FLOAT16", _MARK),
})  # fmt: skip
_ELEMENT = struct({
    1: ("type", integer), 2: ("type_length", integer), 3: ("repetition_type", integer), 4: ("name", text),
    5: ("num_children", integer), 6: ("converted_type", integer), 7: ("scale", integer), 8: ("precision", integer),
    9: ("field_id", integer), 10: ("logicalType", _LOGICAL),
})  # fmt: skip
_STATISTICS = struct({
    1: ("max", binary), 2: ("min", binary), 3: ("null_count", integer), 5: ("max_value", binary),
    6: ("min_value", binary), 7: ("max_exact", boolean), 8: ("min_exact", boolean), 9: ("nan_count", integer),
})  # fmt: skip
_COLUMN = struct({
    1: ("type", integer), 5: ("num_values", integer), 7: ("total_compressed_size", integer),
    9: ("data_page_offset", integer), 11: ("dictionary_page_offset", integer), 12: ("statistics", _STATISTICS),
    14: ("bloom_filter_offset", integer), 15: ("bloom_filter_length", integer),
})  # fmt: skip
_CHUNK = struct({
    1: ("file_path", text), 3: ("meta_data", _COLUMN), 4: ("offset_index_offset", integer),
    5: ("offset_index_length", integer), 6: ("column_index_offset", integer), 7: ("column_index_length", integer),
    8: ("crypto_metadata", _MARK),
})  # fmt: skip
_ROW_GROUP = struct({1: ("columns", list_of(_CHUNK)), 3: ("num_rows", integer), 6: ("total_compressed_size", integer)})
_ORDER = struct({1: ("type", _MARK), 2: ("ieee754", _MARK)})
_FILE = struct({
    2: ("schema", thrift.raw_list), 3: ("num_rows", integer), 4: ("row_groups", list_of(_ROW_GROUP)),
    5: ("key_value_metadata", list_of(_KEY_VALUE)), 6: ("created_by", text), 7: ("column_orders", list_of(_ORDER)),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Where a structure lies in the file; a length of 0 is not known."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """The part of one column that lies in one row group."""

    statistics: Statistics = NOTHING
    min_exact: bool | None = None
    """Whether the minimum is a value of the column; None where the file doesn't say."""
    max_exact: bool | None = None
    offset: int = UNKNOWN
    """Where the first page begins, that of the dictionary where there is one."""
    compressed_size: int = 0
    num_values: int = 0
    bloom_filter: ByteRange | None = None
    column_index: ByteRange | None = None
    offset_index: ByteRange | None = None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are stored together; `chunks` follow the order of the file's leaves."""

    rows: int
    compressed_size: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, eq=False)
class ParquetSchema:
    """The columns of a file."""

    arrow: pa.Schema
    """All of them, nested ones included, as Arrow types."""
    leaves: tuple[ParquetLeaf, ...]
    by_path: Mapping[str, ParquetLeaf | None]
    """Leaves that are not below lists and maps; None where two have the same dotted path."""
    by_id: Mapping[int, ParquetLeaf | None]


@dataclass(frozen=True, eq=False)
class Footer:
    """What a file says of itself."""

    size: int
    """Bytes of the whole file."""
    rows: int
    schema: ParquetSchema
    row_groups: tuple[RowGroup, ...]
    metadata: Mapping[str, str]
    created_by: str

    @property
    def has_julian_dates(self) -> bool:
        """Tell whether Spark wrote the file with the calendar that it used before version 3."""
        version = self.metadata.get("org.apache.spark.version", "3")
        return "org.apache.spark.legacyDateTime" in self.metadata or version.startswith(("1.", "2."))

    def find(self, physical: Physical) -> ParquetLeaf | None:
        """Return the column by its field id where one is given, else by its exact path.

        None where there is no such column, where two have that name, or where it lies below a list or a map. A file
        without ids in a table that has them was written under names that columns may have changed since.
        """
        if physical.field_id is not None:
            return self.schema.by_id.get(physical.field_id)
        return self.schema.by_path.get(physical.path)


def read_footer(file: pa.NativeFile, size: int | None = None) -> Footer:
    """Read and check a file's footer, in one read where it has less than 64 KiB.

    Whatever the file holds, the answer is a footer or a `TableError`.
    """
    size = file.size() if size is None else size
    return parse_footer(read_footer_bytes(file, size), size)


def read_footer_bytes(file: pa.NativeFile, size: int) -> bytes:
    """Read a footer without decoding it: threads can wait for many files, while one decodes."""
    tail = read_span(file, max(size - TAIL, 0), min(size, TAIL))
    if len(tail) < 12 or tail[-4:] not in (_MAGIC, _ENCRYPTED):
        raise TableError(f"It is no Parquet file: {size:,} bytes that don't end with PAR1.")
    if tail[-4:] == _ENCRYPTED:
        raise TableError("Its footer is encrypted, and zonal has no keys: nothing is known of it.")
    length = int.from_bytes(tail[-8:-4], "little")
    if length > size - 12:
        raise TableError(f"Corrupt footer: it says that it has {length:,} bytes, and the file has {size:,}.")
    if length + 8 > len(tail):
        tail = read_span(file, size - length - 8, length + 8)
    return tail[-8 - length : -8]


def read_span(file: pa.NativeFile, offset: int, length: int) -> bytes:
    """Read bytes of a file, fewer at its end; a `TableError` where that fails."""
    try:
        return bytes(file.read_at(length, offset))
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"It can't be read: {error}") from error


def row_group_bounds(footer: Footer, physical: Physical, kind: pa.DataType) -> Bounds:
    """Return one column's bounds in every row group, as values of the table's type `kind`.

    A column that the file doesn't have, or whose type can't be converted soundly, has null bounds.
    """
    leaf, units, found = row_group_ranges(footer, physical, kind)
    return decode.bounds(leaf, kind, found, units)


def row_group_ranges(
    footer: Footer, physical: Physical, kind: pa.DataType
) -> tuple[ParquetLeaf | None, list[Statistics], list[Range]]:
    """Return the same as values: the column, what the row groups count, and their ranges."""
    leaf = footer.find(physical)
    if leaf is None:
        units = [NOTHING for _ in footer.row_groups]
    else:
        units = [group.chunks[leaf.index].statistics for group in footer.row_groups]
    found = decode.ranges(leaf, kind, units)
    return leaf, units, decode.without_julian(found, kind) if footer.has_julian_dates else found


def parse_footer(data: bytes, size: int) -> Footer:
    """Decode and check what `read_footer_bytes` read."""
    stored = thrift.decode(_FILE, data, what="footer")
    try:
        orders = tuple(next(iter(order), "") for order in stored.get("column_orders", ()))
        schema = _schema(stored["schema"], orders)
        created_by = stored.get("created_by", "")
        trust = [decode.trusted(leaf, created_by) for leaf in schema.leaves]
        groups = tuple(_row_group(group, schema.leaves, trust) for group in stored["row_groups"])
        rows = stored["num_rows"]
        metadata = {pair["key"]: pair.get("value", "") for pair in stored.get("key_value_metadata", ())}
    except KeyError as missing:
        raise TableError(f"Corrupt footer: {missing} is missing.") from None
    if rows != sum(group.rows for group in groups):
        raise TableError("Corrupt footer: the rows of its row groups don't add up to those of the file.")
    return Footer(size, rows, schema, groups, metadata, created_by)


def _row_group(stored: Mapping[str, Any], leaves: Sequence[ParquetLeaf], trust: Sequence[bool]) -> RowGroup:
    columns, rows = stored["columns"], stored["num_rows"]
    if rows < 0 or len(columns) != len(leaves):
        raise TableError(f"Corrupt footer: a row group has {rows} rows and {len(columns)} of {len(leaves)} columns.")
    chunks = tuple(_chunk(column, leaf, rows, ok) for column, leaf, ok in zip(columns, leaves, trust, strict=True))
    total = stored.get("total_compressed_size", 0)
    return RowGroup(rows, total if total > 0 else sum(chunk.compressed_size for chunk in chunks), chunks)


def _chunk(stored: Mapping[str, Any], leaf: ParquetLeaf, rows: int, trust: bool) -> Chunk:
    column = stored.get("meta_data")
    if column is None:  # it is encrypted with a key of its own
        return Chunk()
    if not 0 <= column["type"] < len(PHYSICAL) or PHYSICAL[column["type"]] != leaf.physical:
        raise TableError(f"Corrupt footer: a row group has column {quoted(leaf.path)} in another type than the schema.")
    # Spans of an encrypted column hold ciphertext, those of a `_metadata` file lie in another file.
    here = "crypto_metadata" not in stored and "file_path" not in stored
    statistics = column.get("statistics", {})
    return Chunk(
        _statistics(statistics, leaf, rows, trust),
        statistics.get("min_exact"),
        statistics.get("max_exact"),
        column.get("dictionary_page_offset") or column["data_page_offset"],
        max(column["total_compressed_size"], 0),
        column["num_values"],
        _span(column, "bloom_filter") if here else None,
        _span(stored, "column_index") if here else None,
        _span(stored, "offset_index") if here else None,
    )


def _span(stored: Mapping[str, Any], name: str) -> ByteRange | None:
    offset = stored.get(f"{name}_offset", 0)
    return ByteRange(offset, max(stored.get(f"{name}_length", 0), 0)) if offset > 0 else None


def _statistics(stored: Mapping[str, Any], leaf: ParquetLeaf, rows: int, trust: bool) -> Statistics:
    """Choose the bounds whose order is known, and counts that can be true."""
    lower = upper = None
    if leaf.ordered and ("min_value" in stored or "max_value" in stored):
        lower, upper = stored.get("min_value"), stored.get("max_value")
    elif _was_signed(leaf):
        lower, upper = stored.get("min"), stored.get("max")
    nulls = stored.get("null_count", UNKNOWN if leaf.nullable and rows else 0)
    nans = stored.get("nan_count", UNKNOWN if rows else 0)
    return Statistics(
        lower if trust else None,
        upper if trust else None,
        nulls if 0 <= nulls <= rows else UNKNOWN,
        nans if 0 <= nans <= rows else UNKNOWN,
    )


def _was_signed(leaf: ParquetLeaf) -> bool:
    """The deprecated `min` and `max` compare with a sign, which is right for numbers that have one."""
    numbers = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE")
    return leaf.physical in numbers and not pa.types.is_unsigned_integer(leaf.kind)


@lru_cache(maxsize=64)
def _schema(raw: bytes, orders: tuple[str, ...]) -> ParquetSchema:
    """Parse a schema, once for all the files of a table that share it."""
    root = _tree(thrift.decode(list_of(_ELEMENT), raw, what="footer", wire=thrift.LIST))
    walk = _Walk(orders, path_budget=2**20 + 64 * len(raw))
    fields = [_wrapped(*_field(child, _Above(), walk)) for child in root.children]
    return ParquetSchema(
        pa.schema(fields),
        tuple(walk.leaves),
        _unique((leaf.path, leaf) for leaf in walk.leaves),
        _unique((leaf.field_id, leaf) for leaf in walk.leaves if leaf.field_id is not None),
    )


def _unique(pairs: Iterable[tuple[Key, ParquetLeaf]]) -> dict[Key, ParquetLeaf | None]:
    found: dict[Key, ParquetLeaf | None] = {}
    for key, leaf in pairs:
        found[key] = None if leaf.repeated or key in found else leaf
    return found


@dataclass(frozen=True)
class _Node:
    element: Mapping[str, Any]
    children: list["_Node"] = field(default_factory=list)


def _tree(elements: Sequence[Mapping[str, Any]]) -> _Node:
    """Nest the elements, which are listed depth first with the number of children of each."""
    top = _Node({})
    waiting = [(top, 1)]
    for element in elements:
        while waiting and waiting[-1][1] == 0:
            waiting.pop()
        count = element.get("num_children", 0)
        if not waiting or len(waiting) > thrift.MAX_DEPTH or count < 0 or (count and "type" in element):
            raise TableError("Corrupt footer: its schema is no tree, or a deeper one than any real table has.")
        parent, left = waiting.pop()
        node = _Node(element)
        parent.children.append(node)
        waiting += [(parent, left - 1), (node, count)]
    if any(left for _, left in waiting):
        raise TableError("Corrupt footer: its schema ends too early.")
    return top.children[0]


@dataclass
class _Walk:
    """What a walk through the schema needs and gathers."""

    orders: Sequence[str]
    path_budget: int
    """Characters of paths that may still be made: each repeats the names above it, which a hostile file makes long."""
    leaves: list[ParquetLeaf] = field(default_factory=list)


@dataclass(frozen=True)
class _Above:
    """What the groups around a field say of it."""

    path: str = ""
    nullable: bool = False
    repeated: bool = False


_REQUIRED, _OPTIONAL = 0, 1


def _field(node: _Node, above: _Above, walk: _Walk) -> tuple[pa.Field, bool]:
    """Return a field and whether it is repeated; its leaves are added to the walk's."""
    element = node.element
    name = element["name"]
    walk.path_budget -= len(above.path) + len(name)
    if walk.path_budget < 0:
        raise TableError("Corrupt footer: the names in its schema are longer than any real table's.")
    repetition = element.get("repetition_type", _REQUIRED)
    optional, repeated = repetition == _OPTIONAL, repetition not in (_REQUIRED, _OPTIONAL)
    path = f"{above.path}.{name}" if above.path else name
    here = _Above(path, above.nullable or optional, above.repeated or repeated)
    if "type" in element:
        leaf = _leaf(element, here, walk)
        walk.leaves.append(leaf)
        kind = leaf.kind
    else:
        kind = _group(element, [_field(child, here, walk) for child in node.children])
    return pa.field(name, kind, optional), repeated


def _leaf(element: Mapping[str, Any], here: _Above, walk: _Walk) -> ParquetLeaf:
    physical, length = element["type"], element.get("type_length", 0)
    if not 0 <= physical < len(PHYSICAL) or (PHYSICAL[physical] == "FIXED_LEN_BYTE_ARRAY" and not 0 < length < 2**31):
        raise TableError(f"Corrupt footer: column {quoted(here.path)} has no known type.")
    kind, ordered = decode.leaf_kind(PHYSICAL[physical], length, _annotation(element))
    index = len(walk.leaves)
    order = walk.orders[index] if index < len(walk.orders) else ""
    return ParquetLeaf(
        path=here.path,
        index=index,
        physical=PHYSICAL[physical],
        kind=kind,
        length=length,
        field_id=element.get("field_id"),
        nullable=here.nullable,
        repeated=here.repeated,
        ordered=ordered and (order == "type" or (order == "ieee754" and pa.types.is_floating(kind))),
    )


def _annotation(element: Mapping[str, Any]) -> Annotation | None:
    """Return the logical type, or what the older converted type says."""
    if "logicalType" in element:
        # A union without a known member is a type of a later version of the format.
        union: thrift.Struct = element["logicalType"]
        name = next(iter(union), "")
        details = union.get(name, {})
        return Annotation(name, **{**details, "unit": next(iter(details.get("unit", ())), "")})
    if "converted_type" not in element:
        return None
    return decode.converted(element["converted_type"], element.get("precision", 0), element.get("scale", 0))


def _group(element: Mapping[str, Any], children: list[tuple[pa.Field, bool]]) -> pa.DataType:
    """Return the Arrow type of a group, by the rules for lists and maps of LogicalTypes.md."""
    annotation = _annotation(element)
    name = annotation.name if annotation and len(children) == 1 and children[0][1] else ""
    if name == "LIST":
        inner = children[0][0]
        wrapper = pa.types.is_struct(inner.type) and inner.type.num_fields == 1
        if wrapper and inner.name not in ("array", f"{element['name']}_tuple"):
            return pa.list_(inner.type.field(0))
        return pa.list_(inner.with_nullable(False))
    if name == "MAP" and pa.types.is_struct(children[0][0].type) and children[0][0].type.num_fields == 2:
        key, value = children[0][0].type
        return pa.map_(key.with_nullable(False), value)
    return pa.struct([_wrapped(*child) for child in children])


def _wrapped(found: pa.Field, repeated: bool) -> pa.Field:
    return found if not repeated else pa.field(found.name, pa.list_(found.with_nullable(False)), nullable=False)
