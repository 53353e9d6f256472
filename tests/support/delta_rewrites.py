"""Rewrites of Delta tables for tests: the files of a snapshot read, sorted and written anew, without Spark."""

import binascii
import struct
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.delta_tables import LogWriter, add, stats
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Rewrite
from zonal.tables.delta.table import DeltaTable
from zonal.worker.read.reader import Reader
from zonal.worker.write.leaves import odd_leaves
from zonal.worker.write.writer import FileWriter, RowGroups

LAYOUT = Layout("zorder", ("x",))
MAGIC = 1681511377
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def read_rows(scan):
    """The live rows of each file of a scan."""
    reader = Reader(scan.reading, scan.storage)
    return [pa.concat_tables([part.data for part in reader.rows(source)]) for source in scan.sources]


def everything(snapshot):
    return np.arange(len(snapshot.files))


def prepare(where, *, layout=LAYOUT, run="r1", choose=everything, halves=2):
    """Read a table's files and write them anew, each partition into some files; return the table and the rewrite."""
    table = DeltaTable(str(where))
    snapshot = table.snapshot()
    files = np.asarray(choose(snapshot), np.int64)
    scan, writing = table.scan(snapshot, files), table.writing(snapshot, layout=layout, run=run)
    rows = read_rows(scan)
    added = []
    for partition in sorted({source.partition for source in scan.sources}):
        parts = [data for source, data in zip(scan.sources, rows, strict=True) if source.partition == partition]
        added += write_rows(writing, layout, partition, pa.concat_tables(parts), halves)
    return table, Rewrite(snapshot, files, tuple(added), layout, run)


def write_rows(writing, layout, partition, data, parts=1):
    added = []
    step = max(1, -(-data.num_rows // parts))
    for start in range(0, data.num_rows, step):
        writer = FileWriter(writing, layout, partition, data.num_rows, odd_leaves(data))
        writer.write(RowGroups(data.slice(start, step), [0]))
        writer.close()
        added += writer.done
    return added


def named(*names):
    """Choose files by the end of their path."""
    return lambda snapshot: np.array(
        [row for row, path in enumerate(snapshot.files.paths.to_pylist()) if path.endswith(names)], np.int64
    )


def rows_of(where, column="x"):
    """All live values of a column, as zonal reads the table."""
    table = DeltaTable(str(where))
    snapshot = table.snapshot()
    scan = table.scan(snapshot, everything(snapshot), columns=[column])
    return sorted(value for part in read_rows(scan) for value in part.column(0).to_pylist())


# --- tables with real files ------------------------------------------------------------------------------------------


def data_file(log: LogWriter, name, table, **more):
    """Write a Parquet file of a table and return its `add` action."""
    path = log.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return add(name, stats=stats(table.num_rows), size=path.stat().st_size, **more)


def bitmap(positions):
    """A deletion vector of positions below 65,536: magic number and 64-bit roaring bitmap with one array container."""
    values = sorted(positions)
    roaring = struct.pack("<IIHHI", 12346, 1, 0, len(values) - 1, 16) + struct.pack(f"<{len(values)}H", *values)
    return struct.pack("<IQI", MAGIC, 1, 0) + roaring


def z85(data):
    data += b"\0" * (-len(data) % 4)
    text = ""
    for (word,) in struct.iter_unpack(">I", data):
        text += "".join(Z85[word // 85**power % 85] for power in range(4, -1, -1))
    return text


def stored_vector(log: LogWriter, positions, *, prefix="", absolute=False):
    """Write a deletion vector's file and return its descriptor."""
    data, name = bitmap(positions), uuid.uuid4()
    folder = log.path / prefix
    folder.mkdir(exist_ok=True)
    path = folder / f"deletion_vector_{name}.bin"
    frame = struct.pack(">I", len(data)) + data + struct.pack(">I", binascii.crc32(data))
    path.write_bytes(b"\x01" + frame)
    where = path.as_uri() if absolute else prefix + z85(name.bytes)
    descriptor = {"offset": 1, "sizeInBytes": len(data), "cardinality": len(set(positions))}
    return {"storageType": "p" if absolute else "u", "pathOrInlineDv": where} | descriptor


def inline_vector(positions):
    data = bitmap(positions)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(set(positions)),
    }
