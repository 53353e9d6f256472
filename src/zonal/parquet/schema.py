"""Parse the schema in a Parquet footer to Arrow types and leaf columns.

Nothing here trusts the file: a schema that contradicts itself is a `TableError`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.parquet import statistics as decode
from zonal.parquet import thrift
from zonal.parquet.statistics import PHYSICAL, Annotation, ParquetLeaf
from zonal.parquet.thrift import boolean, integer, list_of, struct, text

Key = TypeVar("Key", int, str)

_MARK = struct({})
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


@dataclass(frozen=True, eq=False)
class ParquetSchema:
    """The columns of a file."""

    arrow: pa.Schema
    """All columns, nested ones included, as Arrow types."""
    leaves: tuple[ParquetLeaf, ...]
    by_path: Mapping[str, ParquetLeaf | None]
    """Leaves that are not below lists and maps; None where two have the same dotted path."""
    by_id: Mapping[int, ParquetLeaf | None]


@lru_cache(maxsize=64)
def parse_schema(raw: bytes, orders: tuple[str, ...]) -> ParquetSchema:
    """Parse the schema in a footer; `orders` are the column orders. Files that share a schema share the result."""
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
    leaves: dict[Key, ParquetLeaf | None] = {}
    for key, leaf in pairs:
        leaves[key] = None if leaf.repeated or key in leaves else leaf
    return leaves


@dataclass(frozen=True)
class _Node:
    element: Mapping[str, Any]
    children: list["_Node"] = field(default_factory=list)


def _tree(elements: Sequence[Mapping[str, Any]]) -> _Node:
    """Nest the elements, which are listed depth-first with the number of children of each."""
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
    """The state of a walk through the schema."""

    orders: Sequence[str]
    path_budget: int
    """Characters that paths may still take: each path repeats the names above it, which a hostile file makes long."""
    leaves: list[ParquetLeaf] = field(default_factory=list)


@dataclass(frozen=True)
class _Above:
    """Path, nullability and repetition of a field, from the groups around it."""

    path: str = ""
    nullable: bool = False
    repeated: bool = False


_REQUIRED, _OPTIONAL = 0, 1


def _field(node: _Node, above: _Above, walk: _Walk) -> tuple[pa.Field, bool]:
    """Return a field and whether it is repeated; add its leaves to the walk."""
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
    """Return the logical type, from the older converted type where the file has only that."""
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


def _wrapped(child: pa.Field, repeated: bool) -> pa.Field:
    return child if not repeated else pa.field(child.name, pa.list_(child.with_nullable(False)), nullable=False)
