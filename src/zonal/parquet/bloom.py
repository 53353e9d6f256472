"""Look values up in Parquet's split-block Bloom filters, which tell that a row group certainly lacks a value.

The filter is an array of blocks of 256 bits. A value's hash chooses one block and a bit in each of its eight words; the
value can be there only if all eight are set. See BloomFilter.md in apache/parquet-format.
"""

import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pyarrow as pa

from zonal.errors import TableError
from zonal.parquet import thrift
from zonal.parquet.footer import Footer, read_span
from zonal.parquet.statistics import NANOS, ParquetLeaf, is_text
from zonal.parquet.thrift import integer
from zonal.snapshot import Physical
from zonal.values.words import plain_type

_HEADER_BYTES = 128
"""More than any header needs: a number and three empty unions take some 20 bytes."""
_BLOCK_BYTES = 32
_MARK = thrift.struct({})
_HEADER = thrift.struct({
    1: ("bytes", integer), 2: ("algorithm", thrift.struct({1: ("BLOCK", _MARK)})),
    3: ("hash", thrift.struct({1: ("XXHASH", _MARK)})), 4: ("compression", thrift.struct({1: ("UNCOMPRESSED", _MARK)})),
})  # fmt: skip
_SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
_M32, _M64 = 2**32 - 1, 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def bloom_might_contain(
    file: pa.NativeFile, footer: Footer, row_group: int, physical: Physical, value: object
) -> bool | None:
    """Tell whether a row group might hold a value: False only where it certainly doesn't.

    None where there is no filter, or none that can answer for this value and type.
    """
    leaf = footer.find(physical)
    if leaf is None:
        return None
    span = footer.row_groups[row_group].chunks[leaf.index].bloom_filter
    if span is None or not (forms := _forms(value, leaf)):
        return None
    try:
        header, begin = thrift.decode_prefix(_HEADER, read_span(file, span.offset, _HEADER_BYTES), what="Bloom filter")
    except TableError:  # encrypted, or not a filter: no reason to skip
        return None
    size = header.get("bytes", 0)
    known = all(header.get(part) for part in ("algorithm", "hash", "compression"))
    if not known or size < _BLOCK_BYTES or size % _BLOCK_BYTES or size > footer.size - span.offset - begin:
        return None
    return any(_in_filter(file, span.offset + begin, size, xxh64(form)) for form in forms)


def _in_filter(file: pa.NativeFile, offset: int, size: int, hashed: int) -> bool:
    """Read the one block that a hash chooses, and test its eight bits."""
    block = ((hashed >> 32) * (size // _BLOCK_BYTES)) >> 32
    raw = read_span(file, offset + block * _BLOCK_BYTES, _BLOCK_BYTES)
    if len(raw) < _BLOCK_BYTES:
        return True
    words = struct.unpack("<8I", raw)
    key = hashed & _M32
    return all(word >> ((key * salt & _M32) >> 27) & 1 for word, salt in zip(words, _SALT, strict=True))


def _forms(value: object, leaf: ParquetLeaf) -> tuple[bytes, ...]:
    """Return the bytes of every stored value that equals `value`: 0.0 and -0.0 are two."""
    form = plain_bytes(value, leaf)
    if form is None:
        return ()
    if pa.types.is_floating(leaf.kind) and not any(form[:-1]) and form[-1] in (0, 0x80):
        return form[:-1] + b"\0", form[:-1] + b"\x80"
    return (form,)


def plain_bytes(value: object, leaf: ParquetLeaf) -> bytes | None:
    """Encode a value as the file stores it (PLAIN, without the length of a byte string), as filters hash it.

    None where the column can't hold exactly this value, or where equal values have several encodings (NaN, decimals
    of varying length): then a filter can't be used.
    """
    kind = plain_type(leaf.kind)
    if pa.types.is_floating(kind):
        return _float_bytes(value, leaf)
    if leaf.physical == "BYTE_ARRAY":
        return _string_bytes(value) if is_text(kind) or pa.types.is_binary(kind) else None
    if pa.types.is_fixed_size_binary(kind):
        raw = value.bytes if isinstance(value, UUID) else value
        return raw if isinstance(raw, bytes) and len(raw) == leaf.length else None
    number = _whole_number(value, kind)
    if number is None:
        return None
    try:
        if leaf.physical in ("INT32", "INT64"):
            signed = not pa.types.is_unsigned_integer(kind)
            return number.to_bytes(int(leaf.physical[3:]) // 8, "little", signed=signed)
        return number.to_bytes(leaf.length, "big", signed=True) if pa.types.is_decimal(kind) else None
    except OverflowError:
        return None


def _string_bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else None


def _float_bytes(value: object, leaf: ParquetLeaf) -> bytes | None:
    """Encode a number that the column's width holds exactly; engines differ in how they round others."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        raw = struct.pack({"FLOAT": "<f", "DOUBLE": "<d"}.get(leaf.physical, "<e"), value)
        (back,) = struct.unpack({"FLOAT": "<f", "DOUBLE": "<d"}.get(leaf.physical, "<e"), raw)
    except (OverflowError, ValueError):
        return None
    return raw if back == value else None


def _whole_number(value: object, kind: pa.DataType) -> int | None:
    """Return a value as a whole number of the column's unit; None for fractions of it."""
    types = pa.types
    if types.is_timestamp(kind):
        return _timestamp(value, kind)
    if types.is_date(kind):
        day = value.date() if isinstance(value, datetime) and value == _midnight(value) else value
        return (day - date(1970, 1, 1)).days if isinstance(day, date) and not isinstance(day, datetime) else None
    if types.is_time(kind):
        if not isinstance(value, time) or value.tzinfo is not None:
            return None
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return _whole(micros * 1000, NANOS[kind.unit])
    if not types.is_integer(kind) and not types.is_decimal(kind):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    scale = kind.scale if types.is_decimal(kind) else 0
    try:
        numerator, denominator = value.as_integer_ratio()
    except (OverflowError, ValueError):  # infinity, NaN
        return None
    return _whole(numerator * 10**scale, denominator)


def _timestamp(value: object, kind: pa.DataType) -> int | None:
    if not isinstance(value, datetime) or (value.tzinfo is None) != (kind.tz is None):
        return None
    epoch = datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else timezone.utc)
    return _whole((value - epoch) // timedelta(microseconds=1) * 1000, NANOS[kind.unit])


def _midnight(value: datetime) -> datetime | None:
    return None if value.tzinfo else value.replace(hour=0, minute=0, second=0, microsecond=0)


def _whole(numerator: int, denominator: int) -> int | None:
    return None if numerator % denominator else numerator // denominator


def xxh64(data: bytes) -> int:
    """Hash bytes with XXH64, seed 0.

    >>> hex(xxh64(b"")), hex(xxh64(b"abc"))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    if len(data) >= 32:
        hashed, position = _stripes(data)
    else:
        hashed, position = _P5, 0
    hashed = (hashed + len(data)) & _M64
    while position + 8 <= len(data):
        lane = int.from_bytes(data[position : position + 8], "little")
        hashed = (_rotated(hashed ^ _round(0, lane), 27) * _P1 + _P4) & _M64
        position += 8
    if position + 4 <= len(data):
        lane = int.from_bytes(data[position : position + 4], "little")
        hashed = (_rotated(hashed ^ (lane * _P1 & _M64), 23) * _P2 + _P3) & _M64
        position += 4
    for byte in data[position:]:
        hashed = _rotated(hashed ^ (byte * _P5 & _M64), 11) * _P1 & _M64
    hashed = (hashed ^ hashed >> 33) * _P2 & _M64
    hashed = (hashed ^ hashed >> 29) * _P3 & _M64
    return hashed ^ hashed >> 32


def _stripes(data: bytes) -> tuple[int, int]:
    """Hash all whole stripes of 32 bytes with four accumulators; return their merged state and where they end."""
    lanes = [(_P1 + _P2) & _M64, _P2, 0, -_P1 & _M64]
    end = len(data) // 32 * 32
    for words in struct.iter_unpack("<4Q", data[:end]):
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
    hashed = sum(_rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _M64
    for lane in lanes:
        hashed = ((hashed ^ _round(0, lane)) * _P1 + _P4) & _M64
    return hashed, end


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _M64, 31) * _P1 & _M64


def _rotated(value: int, turn: int) -> int:
    return (value << turn | value >> (64 - turn)) & _M64
