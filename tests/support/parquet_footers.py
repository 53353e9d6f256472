"""Parquet files in memory, with footers that pyarrow or a test wrote."""

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 5
PAGE_ROWS = 2


def stored(table, **options):
    """Write a table into memory, with small row groups and pages."""
    sink = pa.BufferOutputStream()
    options = {"row_group_size": ROWS, "max_rows_per_page": PAGE_ROWS, "write_batch_size": 1, **options}
    pq.write_table(table, sink, write_page_index=True, **options)
    return pa.BufferReader(sink.getvalue())


# Footers made by hand: what no writer at hand does.
def encoded(value):
    """Encode a value in the compact protocol: dicts are structs, by field number."""
    if isinstance(value, dict):
        return b"".join(
            bytes([wire_of(item)]) + varint(2 * number) + (b"" if isinstance(item, bool) else encoded(item))
            for number, item in value.items()
        ) + b"\0"  # fmt: skip
    if isinstance(value, list):
        return bytes([0xF0 | (wire_of(value[0]) if value else 12)]) + varint(len(value)) + b"".join(map(encoded, value))
    return (
        varint(len(value)) + value
        if isinstance(value, bytes)
        else varint(value << 1 if value >= 0 else ~value << 1 | 1)
    )


def wire_of(value):
    return (1 if value else 2) if isinstance(value, bool) else {dict: 12, list: 9, bytes: 8, int: 6}[type(value)]


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def file_of(footer):
    data = footer if isinstance(footer, bytes) else encoded(footer)
    return pa.BufferReader(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")


def handmade(statistics, *, element=None, orders=1, created_by=b"somebody", physical=2, rows=10):
    """A file of one column `x`, INT64 by default, with these statistics."""
    return {
        1: 2,
        2: [{4: b"root", 5: 1}, {1: physical, 3: 1, 4: b"x", **(element or {})}],
        3: rows,
        4: [{1: [{2: 0, 3: {1: physical, 5: rows, 7: 100, 9: 4, 12: statistics}}], 2: 100, 3: rows}],
        6: created_by,
        **({7: [{orders: {}}]} if orders else {}),
    }
