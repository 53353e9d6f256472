"""Decode Avro object container files, with every read checked against the end of the data.

PyIceberg's compiled decoder reads beyond the end of a damaged file. Records become mappings by Iceberg field id.
"""

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

from pyiceberg.avro.codecs import KNOWN_CODECS

from zonal.snapshot import UNKNOWN

_Read = Callable[[bytes, int], tuple[Any, int]]
_ReadPairs = Callable[[bytes, int, int, dict[Any, Any]], int]
_Schema = str | list[Any] | dict[str, Any]
_WIDE = Context(prec=100)


def records(data: bytes) -> Iterator[Mapping[int, Any]]:
    """Yield the records of an Avro object container file; structs are mappings by Iceberg field id."""
    if data[:4] != b"Obj\x01":
        raise ValueError("not an Avro file")
    meta, at = _array(_bytes, _bytes)(data, 4)
    codec = KNOWN_CODECS[meta.get(b"avro.codec", b"null").decode()]
    read = _reader(json.loads(meta[b"avro.schema"]), {})
    sync, at = _fixed(16)(data, at)
    while at < len(data):
        count, at = _long(data, at)
        block, at = _bytes(data, at)
        if data[at : at + 16] != sync:
            raise ValueError("a block is cut off or damaged")
        at += 16
        block = codec.decompress(block) if codec else block
        inside = 0
        for _ in range(count):
            row, inside = read(block, inside)
            yield row
        if inside != len(block):
            raise ValueError("a block is longer than its records")


def _reader(schema: _Schema, named: dict[str, _Read]) -> _Read:
    """Compile an Avro schema; fixed decimals become `Decimal`, other logical types stay numbers and bytes."""
    if isinstance(schema, list):
        return _union([_reader(branch, named) for branch in schema])
    if isinstance(schema, str):
        return _PRIMITIVES.get(schema) or named[schema]
    kind = schema["type"]
    if kind == "record":
        read = _record([(field.get("field-id", UNKNOWN), _reader(field["type"], named)) for field in schema["fields"]])
    elif kind == "array":
        items = schema["items"]
        pairs = schema.get("logicalType") == "map" and [_reader(field["type"], named) for field in items["fields"]]
        read = _array(*pairs) if pairs else _list(_reader(items, named))
    elif kind == "map":
        read = _array(_bytes, _reader(schema["values"], named))
    else:
        read = _fixed(schema["size"]) if kind == "fixed" else _reader(kind, named)
        if schema.get("logicalType") == "decimal":
            read = _decimal(read, schema.get("scale", 0))
    if "name" in schema:
        named[schema["name"]] = read
    return read


def _nothing(data: bytes, at: int) -> tuple[None, int]:  # noqa: ARG001
    return None, at


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift = byte & 127, 7
    while byte > 127:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        shift += 7
        if shift > 70 or value >> 64:
            raise ValueError("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _long(data, at)
    end = at + length
    if not at <= end <= len(data):
        raise ValueError("a value is cut off")
    return data[at:end], end


def _string(data: bytes, at: int) -> tuple[str, int]:
    value, at = _bytes(data, at)
    return value.decode(), at


def _fixed(length: int) -> _Read:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if at + length > len(data):
            raise ValueError("a value is cut off")
        return data[at : at + length], at + length

    return read


def _number(form: str) -> _Read:
    size = struct.calcsize(form)
    return lambda data, at: (struct.unpack_from(form, data, at)[0], at + size)


def _decimal(bytes_of: _Read, scale: int) -> _Read:
    def read(data: bytes, at: int) -> tuple[Decimal, int]:
        value, at = bytes_of(data, at)
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _WIDE), at

    return read


def _union(branches: Sequence[_Read]) -> _Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = _long(data, at)
        if branch < 0:
            raise ValueError("an unknown branch of a union")
        return branches[branch](data, at)

    return read


def _record(fields: Sequence[tuple[int, _Read]]) -> _Read:
    def read(data: bytes, at: int) -> tuple[dict[int, Any], int]:
        values = {}
        for name, field in fields:
            values[name], at = field(data, at)
        return values, at

    return read


def _array(key: _Read, value: _Read) -> _Read:
    """Read an array of key-value pairs, as Iceberg stores maps."""
    pairs = _BY_ID.get((key, value)) or _pairs(key, value)

    def read(data: bytes, at: int) -> tuple[dict[Any, Any], int]:
        values: dict[Any, Any] = {}
        count, at = _block(data, at)
        while count:
            at = pairs(data, at, count, values)
            count, at = _block(data, at)
        return values, at

    return read


def _list(item: _Read) -> _Read:
    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        values = []
        count, at = _block(data, at)
        while count:
            for _ in range(count):
                value, at = item(data, at)
                values.append(value)
            count, at = _block(data, at)
        return values, at

    return read


def _block(data: bytes, at: int) -> tuple[int, int]:
    """Read how many elements follow; 0 ends an array."""
    count, at = _long(data, at)
    if abs(count) > len(data):
        raise ValueError("an array is cut off")
    if count < 0:  # the size of the block in bytes follows
        _, at = _long(data, at)
    return abs(count), at


def _pairs(key: _Read, value: _Read) -> _ReadPairs:
    def read(data: bytes, at: int, count: int, values: dict[Any, Any]) -> int:
        for _ in range(count):
            name, at = key(data, at)
            values[name], at = value(data, at)
        return at

    return read


def _bytes_by_id(data: bytes, at: int, count: int, values: dict[Any, Any]) -> int:
    """Read bounds; written out for ids of up to two bytes and lengths of one, which is nearly all of them."""
    for _ in range(count):
        name, start = data[at], at + 1
        if name > 127:
            name += (data[start] << 7) - 128
            start += 1
        size = data[start]
        if name < 16_384 and size < 128 and not (name | size) & 1:
            at = start + 1 + (size >> 1)
            values[name >> 1] = data[start + 1 : at]
        else:
            name, at = _long(data, at)
            values[name], at = _bytes(data, at)
    if at > len(data):
        raise ValueError("a value is cut off")
    return at


def _longs_by_id(data: bytes, at: int, count: int, values: dict[Any, Any]) -> int:
    """Read counts: most files of a table have the same nulls in most columns, so equal bytes are decoded once."""
    match = _run(2 * count).match(data, at)
    if match is None:
        raise ValueError("a count is cut off")
    values.update(_decoded(match[0]))
    return match.end()


@lru_cache(64)
def _run(numbers: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?:[\x80-\xff]*[\x00-\x7f]){%d}" % numbers)


@lru_cache(256)
def _decoded(run: bytes) -> dict[int, int]:
    numbers, at = [], 0
    while at < len(run):
        number, at = _long(run, at)
        numbers.append(number)
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


_BY_ID: Mapping[tuple[_Read, _Read], _ReadPairs] = {(_long, _bytes): _bytes_by_id, (_long, _long): _longs_by_id}
_PRIMITIVES: Mapping[str, _Read] = {
    "null": _nothing,
    "boolean": lambda data, at: (data[at] != 0, at + 1),
    "int": _long,
    "long": _long,
    "float": _number("<f"),
    "double": _number("<d"),
    "bytes": _bytes,
    "string": _string,
}
