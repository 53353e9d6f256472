"""Rewrites of Iceberg tables for tests, without workers: replacement files by pyarrow, and concurrent writers.

`replacement` reads sources by what the scan says of them, in a few lines and independently of `zonal.worker`.
`Writer` commits what PyIceberg can't: delete files, deletion vectors and tables of version 3.
"""

import json
import sqlite3
import struct
import zlib
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.typedef import IcebergBaseModel, Record
from pyroaring import BitMap

from support.iceberg_tables import Handmade, put
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import FIELD_ID, ColumnMetrics, Rewrite, Written
from zonal.tables.iceberg.arrow_schema import reading_schema
from zonal.tables.iceberg.table import IcebergTable

LAYOUT = Layout("zorder", ("x", "y"))
NUMBERS = count()


def opened(catalog: SqlCatalog, name: str = "db.t", *, version=None) -> IcebergTable:
    return IcebergTable(name, catalog.load_table(name), version=version)


def local(path: str) -> str:
    return path.removeprefix("file://")


def _named(path: str) -> str:
    """Return the name by which a table knows a path, which is a name already in a store."""
    return path if "://" in path else f"file://{path}"


def _put_rows(io: FileIO, path: str, rows: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return put(io, path, sink.getvalue().to_pybytes())


# --- replacement files ---------------------------------------------------------------------------------------------


def numbers(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64()), "y": pa.array([v * 10 for v in values], pa.int64())})


def replacement(table: IcebergTable, snapshot, files=None, *, layout=LAYOUT, run="r1", each=1000) -> Rewrite:
    """Write new files of at most `each` rows for some files of a snapshot; nothing is committed."""
    files = np.arange(len(snapshot.files)) if files is None else np.array(files, np.int64)
    scan = table.scan(snapshot, files)
    writing = table.writing(snapshot, layout=layout, run=run)
    Path(local(writing.folder)).mkdir(parents=True, exist_ok=True)
    added = []
    for partition in sorted({source.partition for source in scan.sources}):
        parts = [rows_of(source, scan.reading) for source in scan.sources if source.partition == partition]
        rows = pa.concat_tables(parts)
        for start in range(0, rows.num_rows, each):
            path = f"{writing.folder}/{next(NUMBERS)}.parquet"
            added.append(write_file(path, rows.slice(start, each), writing, partition))
    return Rewrite(snapshot, files, tuple(added), layout, run)


def rows_of(source, reading) -> pa.Table:
    """Read a source: top-level columns by id, then deletes, then what tracks rows."""
    data = pq.ParquetFile(local(source.path), arrow_extensions_enabled=False).read()
    by_id = {int(field.metadata[FIELD_ID]): data.column(field.name) for field in data.schema if field.metadata}
    for number, names in reading.aliases.items():
        found = next((name for name in names if name in data.column_names), None)
        if not by_id.get(number) and found:
            by_id[number] = data.column(found)
    columns = []
    for field in reading.schema:
        number = int(field.metadata[FIELD_ID])
        default = source.constants.get(field.name, reading.defaults.get(number, pa.scalar(None, field.type)))
        column = by_id.get(number)
        column = pa.chunked_array([pa.repeat(default, data.num_rows)]) if column is None else column
        columns.append(column.cast(field.type))
    positions = pa.array(np.arange(data.num_rows))
    for name, first, step in ((reading.row_id, source.first_row_id, 1), (reading.row_version, source.row_version, 0)):
        if name is not None and first is not None:
            at = reading.schema.get_field_index(name)
            columns[at] = pc.coalesce(columns[at], pc.add(pc.multiply(positions, step), first))
    table = pa.Table.from_arrays(columns, schema=reading.schema)
    return table.filter(pa.array(~deleted(source, table, reading)))


def deleted(source, table: pa.Table, reading) -> np.ndarray:
    gone = np.zeros(table.num_rows, bool)
    if source.vector is not None:
        blob = Path(local(source.vector.location)).read_bytes()[source.vector.offset :][: source.vector.size]
        gone[positions_in(blob)] = True
    for path in source.position_deletes:
        for row in pq.read_table(local(path)).to_pylist():
            if row["file_path"] == source.path:
                gone[row["pos"]] = True
    for delete in source.equality_deletes:
        names = [field.name for field in reading.schema if int(field.metadata[FIELD_ID]) in delete.field_ids]
        keys = {tuple(row[name] for name in names) for row in pq.read_table(local(delete.location)).to_pylist()}
        gone |= [tuple(row) in keys for row in zip(*(table[name].to_pylist() for name in names), strict=True)]
    return gone


def write_file(path: str, rows: pa.Table, writing, partition: int) -> Written:
    rows = pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(rows.columns, writing.schema, strict=True)],
        schema=writing.schema,
    )
    pq.write_table(rows, local(path), store_schema=False, compression=writing.compression)
    footer = pq.read_metadata(local(path))
    metrics = tuple(metrics_of(footer, number, rows) for number in range(len(footer.schema)))
    return Written(path, Path(local(path)).stat().st_size, rows.num_rows, partition, metrics)


def metrics_of(footer, number: int, rows: pa.Table) -> ColumnMetrics:
    chunks = [footer.row_group(group).column(number) for group in range(footer.num_row_groups)]
    path = footer.schema.column(number).path
    lower = upper = None
    nans = 0
    if "list." not in path and "key_value." not in path:
        values = rows.flatten().flatten().column(path)
        if isinstance(values.type, pa.BaseExtensionType):
            values = values.cast(values.type.storage_type)
        if pa.types.is_floating(values.type):
            nans = pc.sum(pc.is_nan(values)).as_py() or 0
            values = values.filter(pc.invert(pc.is_nan(values)))
        found = pc.min_max(values)
        if found["min"].is_valid:
            lower, upper = found["min"], found["max"]
    return ColumnMetrics(
        path,
        sum(chunk.total_compressed_size for chunk in chunks),
        sum(chunk.num_values for chunk in chunks),
        sum(chunk.statistics.null_count for chunk in chunks),
        nans,
        lower,
        upper,
    )


# --- deletion vectors ----------------------------------------------------------------------------------------------


def vector_blob(positions) -> bytes:
    """Frame a 64-bit roaring bitmap as the blob `deletion-vector-v1`."""
    body = b"\xd1\xd3\x39\x64" + struct.pack("<QI", 1, 0) + BitMap(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def positions_in(blob: bytes) -> list[int]:
    (length,) = struct.unpack(">I", blob[:4])
    body = blob[4 : 4 + length]
    assert struct.unpack(">I", blob[4 + length :]) == (zlib.crc32(body),)
    assert body[:4] == b"\xd1\xd3\x39\x64"
    return list(BitMap.deserialize(body[16:]))


# --- writers of what PyIceberg can't -------------------------------------------------------------------------------


class Writer(Handmade):
    """Another engine: its commits build on the newest version, and the catalog knows them."""

    def __init__(self, catalog: SqlCatalog, name: str = "db.t", *, format_version: int | None = None) -> None:
        self.catalog, self.identifier = catalog, name
        table = catalog.load_table(name)
        version = format_version or table.metadata.format_version
        table.metadata = _Dumped(table.metadata)
        super().__init__(table, format_version=version)
        self.table = catalog.load_table(name)
        self.metadata["format-version"] = version
        self.rows = 0

    def add_manifest(self, files: list[DataFile], **options) -> str:
        path = super().add_manifest(files, **options)
        # Without counts, PyIceberg's own commits leave a manifest out.
        added, rows = 7, 10
        self.manifests[-1]._data[added] = len(files)
        self.manifests[-1]._data[rows] = sum(file.record_count for file in files)
        return path

    def add_rows(self, rows: int) -> None:
        """Count rows that get ids, of the manifest that was added last; version 3 only."""
        manifest = self.manifests[-1]
        manifest._data = [*manifest._data, *[None] * (16 - len(manifest._data))]
        manifest._data[15] = self.metadata.get("next-row-id", 0) + self.rows
        self.rows += rows

    def _add_snapshot(self, manifest_list: str, summary: dict[str, str]) -> None:
        parent = self.metadata.get("current-snapshot-id")
        refs, next_row_id = self.metadata.get("refs", {}), self.metadata.get("next-row-id") or 0
        super()._add_snapshot(manifest_list, summary)
        snapshot = self.metadata["snapshots"][-1]
        if parent is not None and parent != -1:
            snapshot["parent-snapshot-id"] = parent
        if self.version == 3:
            snapshot |= {"first-row-id": next_row_id, "added-rows": self.rows}
        self.metadata["next-row-id"] = next_row_id + self.rows
        if self.version < 3:
            del self.metadata["next-row-id"]
        self.metadata["refs"] = {**refs, **self.metadata["refs"]}
        self.metadata["last-updated-ms"] = snapshot["timestamp-ms"]

    def append(self, rows: pa.Table, folder: Path) -> None:
        """Add a data file of each partition, also by transforms for which PyIceberg's own writer needs more."""
        spec, schema = self.table.spec(), self.table.schema()
        transforms = [(schema.find_field(f.source_id), f.transform) for f in spec.fields]
        groups: dict[tuple, list[int]] = {}
        for at, row in enumerate(rows.to_pylist()):
            key = tuple(t.transform(field.field_type)(row[field.name]) for field, t in transforms)
            groups.setdefault(key, []).append(at)
        files = [self._file(rows.take(places), Record(*key), folder) for key, places in groups.items()]
        self.add_manifest(files, spec_id=spec.spec_id)

    def _file(self, rows: pa.Table, partition: Record, folder: Path) -> DataFile:
        path = folder / f"{next(NUMBERS)}.parquet"
        schema = reading_schema(self.table.schema())
        pq.write_table(
            pa.Table.from_arrays([c.cast(f.type) for c, f in zip(rows.columns, schema, strict=True)], schema=schema),
            path,
        )
        size = path.stat().st_size
        return self.data_file(
            f"file://{path}", partition=partition, record_count=rows.num_rows, file_size_in_bytes=size
        )

    def publish(self, **summary: str) -> None:
        """Commit, and let the catalog point to the new metadata."""
        location = _named(self.commit(**summary))
        database = str(self.catalog.engine.url).removeprefix("sqlite:///")
        with sqlite3.connect(database, timeout=30) as connection:
            connection.execute(
                "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?",
                (location, self.identifier.rpartition(".")[2]),
            )


class _Dumped:
    """Metadata of version 3, which PyIceberg reads but doesn't dump."""

    def __init__(self, metadata) -> None:
        self._metadata = metadata

    def __getattr__(self, name):
        return getattr(self._metadata, name)

    def model_dump_json(self) -> str:
        return IcebergBaseModel.model_dump_json(self._metadata)


def delete_positions(
    catalog: SqlCatalog, folder: Path | str, positions: dict[str, list[int]], *, totals: bool = False, **fields
) -> None:
    """Commit a position delete file; with `totals`, the summary counts on from the one before."""
    path = f"{folder}/pos-{next(NUMBERS)}.parquet"
    rows = [(name, at) for name, places in sorted(positions.items()) for at in places]
    names, places = zip(*rows, strict=True)
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {FIELD_ID: "2147483546"}),
            pa.field("pos", pa.int64(), False, {FIELD_ID: "2147483545"}),
        ]
    )
    writer = Writer(catalog)
    size = _put_rows(writer.table.io, path, pa.table([pa.array(names), pa.array(places, pa.int64())], schema=schema))
    spec_id = fields.pop("spec_id", 0)
    file = writer.position_deletes(_named(path), record_count=len(rows), file_size_in_bytes=size, **fields)
    writer.add_manifest([file], spec_id=spec_id)
    writer.publish(**_totals(writer, len(rows), size) if totals else {})


def _totals(writer: Writer, rows: int, size: int) -> dict[str, str]:
    before = writer.table.current_snapshot().summary.additional_properties
    more = {"total-delete-files": 1, "total-position-deletes": rows, "total-files-size": size}
    return {name: str(int(value) + more.get(name, 0)) for name, value in before.items() if name.startswith("total-")}


def delete_vectors(catalog: SqlCatalog, folder: Path | str, positions: dict[str, list[int]]) -> None:
    """Commit deletion vectors, all in one Puffin file; older vectors of the same data files go."""
    path = f"{folder}/dv-{next(NUMBERS)}.puffin"
    data, blobs = b"PFA1", []
    for name, places in positions.items():
        blob = vector_blob(places)
        blobs.append({"name": name, "offset": len(data), "length": len(blob), "rows": len(places)})
        data += blob
    meta = [
        {
            "type": "deletion-vector-v1",
            "fields": [2147483546],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": blob["offset"],
            "length": blob["length"],
            "properties": {"referenced-data-file": blob["name"], "cardinality": str(blob["rows"])},
        }
        for blob in blobs
    ]
    footer = json.dumps({"blobs": meta}).encode()
    writer = Writer(catalog)
    end = b"PFA1" + footer + struct.pack("<I", len(footer)) + b"\0\0\0\0PFA1"
    size = put(writer.table.io, path, data + end)
    files = [
        Handmade.file(
            content=1,
            path=_named(path),
            file_format=FileFormat.PUFFIN,
            record_count=blob["rows"],
            file_size_in_bytes=size,
            referenced_data_file=blob["name"],
            content_offset=blob["offset"],
            content_size_in_bytes=blob["length"],
        )
        for blob in blobs
    ]
    writer.add_manifest(files)
    writer.publish()


def delete_equal(catalog: SqlCatalog, folder: Path | str, rows: pa.Table, ids: list[int], **fields) -> None:
    """Commit an equality delete file."""
    path = f"{folder}/eq-{next(NUMBERS)}.parquet"
    writer = Writer(catalog)
    size, spec_id = _put_rows(writer.table.io, path, rows), fields.pop("spec_id", 0)
    fields = {"equality_ids": ids, "record_count": rows.num_rows, "file_size_in_bytes": size} | fields
    writer.add_manifest([Handmade.file(content=2, path=_named(path), **fields)], spec_id=spec_id)
    writer.publish()
