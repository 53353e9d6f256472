"""Decode the part of Thrift's compact protocol that Parquet's metadata uses.

A reader is a function that takes the bytes, a position and the type on the wire, and returns a value and the position
after it; readers of structs and lists are composed of others. Fields that a struct's reader doesn't name are skipped,
so a returned value has the expected type, or the bytes are corrupt.

Hostile bytes end in a `TableError`: every step moves forward by at least a byte, lengths are compared with what is left
before anything is allocated, and nesting is bounded. See thrift/doc/specs/thrift-compact-protocol.md.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from zonal.errors import TableError

T = TypeVar("T")
Decoder: TypeAlias = Callable[[bytes, int, int], tuple[T, int]]
Struct = dict[str, Any]

MAX_DEPTH = 64
"""Nesting of values that are skipped; Parquet's own structs nest less than ten deep."""

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(14)
_FIXED_BYTES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
_MASK = 2**64 - 1


def decode(reader: Decoder[T], data: bytes, *, what: str, wire: int = _STRUCT) -> T:
    """Read one value from the beginning of `data`; a `TableError` says that `what` is corrupt.

    >>> decode(struct({1: ("rows", integer), 2: ("name", text)}), bytes.fromhex("15 0a 18 02 6964 00"), what="footer")
    {'rows': 5, 'name': 'id'}
    """
    return decode_prefix(reader, data, what=what, wire=wire)[0]


def decode_prefix(reader: Decoder[T], data: bytes, *, what: str, wire: int = _STRUCT) -> tuple[T, int]:
    """Read one value, and return it with the number of bytes it takes."""
    try:
        return reader(data, 0, wire)
    except IndexError:
        raise TableError(f"Corrupt {what}: it ends in the middle of a value.") from None
    except _CorruptError as error:
        raise TableError(f"Corrupt {what}: {error}.") from None


class _CorruptError(Exception):
    """Says what is wrong with the bytes; `decode` adds which structure they are of."""


def struct(fields: Mapping[int, tuple[str, Decoder[Any]]]) -> Decoder[Struct]:
    """Return a reader of a struct as a dict of the fields named here that it has."""

    def read(data: bytes, position: int, wire: int) -> tuple[Struct, int]:
        if wire != _STRUCT:
            raise _unexpected("a struct", wire)
        values: Struct = {}
        number = 0
        while head := data[position]:
            position += 1
            if head >> 4:
                number += head >> 4
            else:
                number, position = _zigzag(data, position)
            known = fields.get(number)
            if known is None:
                position = _skip(data, position, head & 15, MAX_DEPTH)
            else:
                values[known[0]], position = known[1](data, position, head & 15)
        return values, position + 1

    return read


def list_of(item: Decoder[T]) -> Decoder[list[T]]:
    """Return a reader of a list of values of one type."""

    def read(data: bytes, position: int, wire: int) -> tuple[list[T], int]:
        if wire not in (_LIST, _SET):
            raise _unexpected("a list", wire)
        count, inner, position = _list_head(data, position)
        values = []
        for _ in range(count):
            value, position = item(data, position, inner)
            values.append(value)
        return values, position

    return read


def integer(data: bytes, position: int, wire: int) -> tuple[int, int]:
    """Read an integer of any width, as a signed 64-bit number."""
    if _I16 <= wire <= _I64:
        return _zigzag(data, position)
    if wire != _BYTE:
        raise _unexpected("an integer", wire)
    byte = data[position]
    return byte - 256 if byte > 127 else byte, position + 1


def boolean(_: bytes, position: int, wire: int) -> tuple[bool, int]:
    """Read a boolean field, whose type is its value."""
    if wire not in (_TRUE, _FALSE):
        raise _unexpected("a boolean", wire)
    return wire == _TRUE, position


def listed_boolean(data: bytes, position: int, wire: int) -> tuple[bool, int]:
    """Read a boolean in a list: a byte of its own, 1 for true, 2 or (by older writers) 0 for false."""
    if wire not in (_TRUE, _FALSE):
        raise _unexpected("a boolean", wire)
    return data[position] == _TRUE, position + 1


def binary(data: bytes, position: int, wire: int) -> tuple[bytes, int]:
    """Read a byte string."""
    if wire != _BINARY:
        raise _unexpected("a byte string", wire)
    length, position = _varint(data, position)
    end = position + length
    if end > len(data):
        raise _CorruptError("a byte string is longer than the data")
    return data[position:end], end


def text(data: bytes, position: int, wire: int) -> tuple[str, int]:
    """Read a string; bytes that are no UTF-8 become U+FFFD."""
    value, position = binary(data, position, wire)
    return value.decode("utf-8", "replace"), position


def raw_list(data: bytes, position: int, wire: int) -> tuple[bytes, int]:
    """Read a list as its undecoded bytes, for `decode(list_of(…), …, wire=LIST)` later."""
    if wire != _LIST:
        raise _unexpected("a list", wire)
    end = _skip(data, position, wire, MAX_DEPTH)
    return data[position:end], end


LIST = _LIST


def _unexpected(wanted: str, wire: int) -> _CorruptError:
    return _CorruptError(f"{wanted} was expected, and there is a value of type {wire}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    position += 1
    if byte < 128:
        return byte, position
    result, shift = byte & 127, 7
    while shift < 64:
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & _MASK, position
        shift += 7
    raise _CorruptError("an integer has more than ten bytes")


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    value = data[position]
    if value < 128:  # most numbers of a footer have one byte: this saves them a call
        return (value >> 1) ^ -(value & 1), position + 1
    value, position = _varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def _list_head(data: bytes, position: int) -> tuple[int, int, int]:
    """Return the count, the type of the items and the position of the first; an item takes at least one byte."""
    head = data[position]
    count, position = head >> 4, position + 1
    if count == 15:
        count, position = _varint(data, position)
    if count > len(data) - position:
        raise _CorruptError("a list has more items than the data has bytes")
    return count, head & 15, position


def _skip(data: bytes, position: int, wire: int, depth: int) -> int:
    """Return the position after a field's value."""
    if _I16 <= wire <= _I64:
        while data[position] > 127:
            position += 1
        return position + 1
    if wire == _BINARY:
        length, position = _varint(data, position)
        if length > len(data) - position:
            raise _CorruptError("a byte string is longer than the data")
        return position + length
    if wire in _FIXED_BYTES:
        return position + _FIXED_BYTES[wire]
    if depth == 0:
        raise _CorruptError(f"values are nested more than {MAX_DEPTH} deep")
    if wire == _STRUCT:
        return _skip_struct(data, position, depth - 1)
    if wire in (_LIST, _SET):
        count, inner, position = _list_head(data, position)
        return _skip_items(data, position, (inner,), count, depth - 1)
    if wire == _MAP:
        count, position = _varint(data, position)
        kinds = data[position] if count else 0
        return _skip_items(data, position + bool(count), (kinds >> 4, kinds & 15), count, depth - 1)
    raise _CorruptError(f"a value has the unknown type {wire}")


def _skip_struct(data: bytes, position: int, depth: int) -> int:
    while head := data[position]:
        position += 1
        if head < 16:
            _, position = _varint(data, position)
        wire = head & 15
        if wire == _I32:  # the type of most fields: this saves them a call
            while data[position] > 127:
                position += 1
            position += 1
        else:
            position = _skip(data, position, wire, depth)
    return position + 1


def _skip_items(data: bytes, position: int, wires: tuple[int, ...], count: int, depth: int) -> int:
    if count > len(data) - position:
        raise _CorruptError("a list has more items than the data has bytes")
    for _ in range(count):
        for wire in wires:
            if wire == _STRUCT and depth:
                position = _skip_struct(data, position, depth - 1)
            else:
                position = position + 1 if wire in (_TRUE, _FALSE) else _skip(data, position, wire, depth)
    return position
