"""Convert a Delta table's schema between the log's JSON and Arrow, with the physical names in statistics and files."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import FIELD_ID
from zonal.values.columns import find

Json = Any
"""What `json.loads` returns."""
Steps = tuple[str, ...]
"""Names of fields from the root of the schema to a leaf."""

_ID = "delta.columnMapping.id"
TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
VARIANT = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(10, 0),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "variant": VARIANT,
    "void": pa.null(),
}

_LeafAt = tuple["DeltaLeaf", tuple[int, ...]]
"""A leaf, and the positions from the root to it."""


@dataclass(frozen=True)
class DeltaLeaf:
    """A column without children, or a leaf of a struct."""

    name: str
    """Dotted logical path."""
    type: pa.DataType
    steps: Steps
    """Physical names, which statistics and files use ("Column Mapping")."""
    field_id: int | None = None
    bounded: bool = True
    """Whether statistics have bounds of it in the order that predicates compare by."""
    was_float: bool = False
    """Whether type widening made it a double from a float: statistics of old files are the text of a float."""


def read_schema(text: str, *, mapping: str = "none") -> tuple[pa.Schema, tuple[DeltaLeaf, ...]]:
    """Read the schema JSON of the log, with `mapping` as `delta.columnMapping.mode`.

    A leaf whose dotted name resolves to another column (see `zonal.values.columns.find`) is left out.
    """
    with _refusing():
        fields, leaves = _read_fields(json.loads(text), mapping, "", ())
    schema = pa.schema(fields)
    count = Counter(leaf.name for leaf, _ in leaves)
    return schema, tuple(leaf for leaf, path in leaves if count[leaf.name] == 1 or find(schema, leaf.name) == path)


def file_fields(text: str, *, mapping: str = "none") -> dict[str, pa.Field]:
    """Return the top-level fields as data files have them, by logical name: physical names, and ids where mapped.

    All are nullable, as files from before a column became NOT NULL may have nulls.
    """
    with _refusing():
        return {member["name"]: _file_field(member, mapping) for member in _members(json.loads(text))}


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TableError(f"The table's schema can't be read: {type(error).__name__} {error}") from None


def _file_field(member: Json, mapping: str) -> pa.Field:
    metadata = member.get("metadata") or {}
    if mapping == "none":
        return pa.field(member["name"], _file_type(member["type"], mapping, {}, ""))
    name, number = metadata.get("delta.columnMapping.physicalName", member["name"]), metadata.get(_ID)
    if number is None and mapping == "id":
        raise ValueError(f"column {quoted(member['name'])} has no id")
    nested = metadata.get("delta.columnMapping.nested.ids") or {}
    return pa.field(name, _file_type(member["type"], mapping, nested, name), metadata=_with_id(number))


def _with_id(number: Json) -> dict[bytes, bytes] | None:
    return None if number is None else {FIELD_ID: str(int(number)).encode()}


def _file_type(kind: Json, mapping: str, ids: Mapping[str, Any], path: str) -> pa.DataType:
    """Return the type in files; `ids` are the field ids of the elements, keys and values below `path`."""

    def part(name: str, inner: Json, _: bool) -> pa.Field:
        below = f"{path}.{name}"
        return pa.field(name, _file_type(inner, mapping, ids, below), name != "key", _with_id(ids.get(below)))

    return _converted(kind, lambda member: _file_field(member, mapping), part)


def _read_fields(struct: Json, mapping: str, above: str, steps: Steps) -> tuple[list[pa.Field], list[_LeafAt]]:
    fields: list[pa.Field] = []
    leaves: list[_LeafAt] = []
    for member in _members(struct):
        name, kind, metadata = member["name"], member["type"], member.get("metadata") or {}
        physical = name if mapping == "none" else metadata.get("delta.columnMapping.physicalName", name)
        path, dotted = (*steps, physical), f"{above}{name}"
        if isinstance(kind, dict) and kind["type"] == "struct":
            children, below = _read_fields(kind, mapping, f"{dotted}.", path)
            arrow = pa.struct(children)
        else:
            arrow, below = _type(kind), []
        if arrow == VARIANT and not below:
            parts = [DeltaLeaf(f"{dotted}.{part.name}", part.type, (*path, part.name), bounded=False) for part in arrow]
            below = [(part, (position,)) for position, part in enumerate(parts)]
        position = len(fields)
        leaves += [(leaf, (position, *rest)) for leaf, rest in below]
        if not below:
            leaves.append((_leaf(dotted, arrow, path, metadata, mapping), (position,)))
        fields.append(pa.field(name, arrow, bool(member.get("nullable", True))))
    return fields, leaves


def _leaf(name: str, kind: pa.DataType, steps: Steps, metadata: Mapping[str, Any], mapping: str) -> DeltaLeaf:
    field_id = metadata.get(_ID) if mapping == "id" else None
    # Statistics of a collated string are in the order of its bytes, predicates on it are not.
    bounded = raw_type(kind) is not None and "__COLLATIONS" not in metadata
    changes = metadata.get("delta.typeChanges") or ()
    was_float = pa.types.is_float64(kind) and any(change.get("fromType") == "float" for change in changes)
    return DeltaLeaf(name, kind, steps, field_id, bounded, was_float)


def _members(struct: Json) -> list[Mapping[str, Any]]:
    # "Primitive Types": columns of type void aren't in the files, and readers drop them.
    return [member for member in struct["fields"] if member["type"] != "void"]


def _type(kind: Json) -> pa.DataType:
    def field(member: Json) -> pa.Field:
        return pa.field(member["name"], _type(member["type"]), member.get("nullable", True))

    return _converted(kind, field, lambda name, inner, nullable: pa.field(name, _type(inner), nullable))


def _converted(
    kind: Json, field: Callable[[Json], pa.Field], part: Callable[[str, Json, bool], pa.Field]
) -> pa.DataType:
    """Convert a type: `field` converts a member of a struct; `part` an element, key or value that may be null."""
    if isinstance(kind, str):
        return _primitive(kind)
    if kind["type"] == "struct":
        return pa.struct([field(member) for member in _members(kind)])
    if kind["type"] == "array":
        return pa.list_(part("element", kind["elementType"], kind.get("containsNull", True)))
    if kind["type"] == "map":
        key = part("key", kind["keyType"], False)
        return pa.map_(key, part("value", kind["valueType"], kind.get("valueContainsNull", True)))
    raise ValueError(f"unknown type {quoted(str(kind['type']))}")


def _primitive(kind: str) -> pa.DataType:
    if kind in _TYPES:
        return _TYPES[kind]
    if match := re.fullmatch(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)", kind):
        return pa.decimal128(int(match[1]), int(match[2]))
    if re.fullmatch(r"(var)?char\(\d+\)", kind):
        return pa.string()
    raise ValueError(f"unknown type {quoted(kind)}")


_BOUNDED = (pa.types.is_floating, pa.types.is_decimal, pa.types.is_string, pa.types.is_boolean)


def raw_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that a bound has in JSON; None for types that have no bounds."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return pa.large_string()
    bounded = any(test(kind) for test in _BOUNDED)
    return wide_type(kind) if bounded else None


def wide_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a bound of the column has before it is moved outward."""
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal256(76, 38)
    return pa.large_string() if pa.types.is_string(kind) else kind


# --- from Arrow ------------------------------------------------------------------------------------------------------

_NAMES: Mapping[pa.DataType, str] = {
    **{kind: name for name, kind in _TYPES.items() if name not in ("decimal", "variant", "void")},
    **dict.fromkeys((pa.large_string(), pa.string_view()), "string"),
    **dict.fromkeys((pa.large_binary(), pa.binary_view()), "binary"),
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.float16(): "float",
    pa.date64(): "date",
}
"""Delta's name of every Arrow type all of whose values it can hold."""
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=]")


def delta_schema(schema: pa.Schema) -> dict[str, Json]:
    """Return the log's schema of a new table; all columns are nullable, as NOT NULL is a separate feature.

    A type that can't hold every value, or a name that Delta forbids, is a `TableError` with the column's name.
    """
    return _delta_struct(list(schema), "")


def _delta_struct(fields: Sequence[pa.Field], above: str) -> dict[str, Json]:
    seen: dict[str, str] = {}
    for field in fields:
        if _FORBIDDEN.search(field.name) or not field.name:
            raise TableError(
                f"Delta can't have a column called {quoted(above + field.name)}: without column mapping, names have "
                "none of the characters ' ,;{}()=', tab and new line. Rename it first."
            )
        if (other := seen.get(field.name.casefold())) is not None:
            raise TableError(
                f"Delta can't tell the columns {quoted(above + other)} and {quoted(above + field.name)} apart: its "
                "names are case-insensitive. Rename one."
            )
        seen[field.name.casefold()] = field.name
    members = [
        {"name": field.name, "type": _delta_type(field.type, above + field.name), "nullable": True, "metadata": {}}
        for field in fields
    ]
    return {"type": "struct", "fields": members}


def _delta_type(kind: pa.DataType, path: str) -> Json:
    if pa.types.is_dictionary(kind):
        return _delta_type(kind.value_type, path)
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind) and kind.num_fields:
        return _delta_struct(list(kind), f"{path}.")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"type": "array", "elementType": _delta_type(kind.value_type, f"{path}.element"), "containsNull": True}
    if pa.types.is_map(kind):
        key, value = _delta_type(kind.key_type, f"{path}.key"), _delta_type(kind.item_type, f"{path}.value")
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    raise TableError(
        f"Column {quoted(path)} has the type {kind}, which Delta doesn't have. Convert or leave out the column first."
    )
