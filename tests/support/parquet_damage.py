"""Parquet files with damaged footers."""

import pyarrow.parquet as pq


def varint(number):
    """Encode a number in Thrift's compact protocol."""
    number = number << 1 if number >= 0 else ~number << 1 | 1
    found = []
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def chunk_bytes(values, uncompressed, compressed, page):
    """The fields 5, 6, 7 and 9 of a column's metadata in a footer."""
    return b"".join(
        [b"\x16", varint(values), b"\x16", varint(uncompressed), b"\x16", varint(compressed), b"\x26", varint(page)]
    )


def with_chunk(path, group, **changes):
    """Change numbers of a row group's first column in a file's footer; its length stays the same."""
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(0)
    numbers = {
        "values": chunk.num_values,
        "uncompressed": chunk.total_uncompressed_size,
        "compressed": chunk.total_compressed_size,
        "page": chunk.data_page_offset,
    }
    before, after = chunk_bytes(**numbers), chunk_bytes(**numbers | changes)
    raw = path.read_bytes()
    assert raw.count(before) == 1
    assert len(before) == len(after), "or the footer's length would have to change"
    path.write_bytes(raw.replace(before, after))
