"""Entries of query logs, read from SQL, JSON, CSV, Parquet and Spark's event logs."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from zonal.errors import quoted
from zonal.workload.event_logs import CUT_OFF, read_event_log
from zonal.workload.log_files import BROKEN, LogFile, open_text
from zonal.workload.query import LogError
from zonal.workload.records import LogEntry, Roles, entry_of, roles_of
from zonal.workload.statements import split_statements

_LONGEST_LINE = 1 << 26
_LONGEST_FIELD = 1 << 24
_LONGEST_DOCUMENT = 1 << 29
_DELIMITERS = ",\t;|"


def entries_of(log: LogFile, *, tables: Sequence[str], dialect: str | None, zone: tzinfo) -> Iterator[LogEntry]:
    """Yield the entries of a log; a damaged rest is one entry with a problem, a log without SQL is a `LogError`."""
    if log.kind == "events":
        yield from read_event_log(_event_lines(log), tables)
        return
    path = log.paths[0]
    try:
        if log.kind == "sql":
            yield from _sql(log.name, path, dialect)
        elif log.kind == "json":
            yield from _json(log.name, path, zone)
        elif log.kind == "csv":
            yield from _csv(log.name, path, zone)
        else:
            yield from _parquet(log.name, path, zone)
    except BROKEN:
        yield LogEntry(log.name, problem="The log is cut off or damaged here.")


def _lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """Yield lines with their numbers, and None for lines that are too long."""
    with open_text(path) as stream:
        number, is_rest = 0, False
        while line := stream.readline(_LONGEST_LINE):
            is_whole = line.endswith("\n") or len(line) < _LONGEST_LINE
            number += not is_rest
            if not is_rest:
                yield number, line if is_whole else None
            is_rest = not is_whole


def _event_lines(log: LogFile) -> Iterator[tuple[str, str]]:
    for path in log.paths:
        yield from _event_file(path)


def _event_file(path: Path) -> Iterator[tuple[str, str]]:
    try:
        for number, line in _lines(path):
            yield f"{path.name}:{number}", line or ""
    except BROKEN:  # an application that still runs hasn't finished its last block
        yield path.name, CUT_OFF


def _sql(name: str, path: Path, dialect: str | None) -> Iterator[LogEntry]:
    with open_text(path) as stream:
        for line, sql in split_statements(stream.read, dialect=dialect):
            yield LogEntry(f"{name}:{line}", sql)


class _Columns:
    """The roles of the columns of a log's records, and whether any record had SQL."""

    def __init__(self, name: str, zone: tzinfo) -> None:
        self.name, self.zone = name, zone
        self.known: dict[tuple[str, ...], Roles] = {}
        self.first: tuple[str, ...] = ()
        self.has_sql = False

    def entry(self, record: object, source: str) -> LogEntry:
        if isinstance(record, str):
            self.has_sql = True
            return LogEntry(
                source, record.strip().rstrip(";"), problem="" if record.strip() else "The entry has no SQL."
            )
        if not isinstance(record, dict):
            return LogEntry(source, problem="The entry is no record.")
        flat = _flat(record)
        names = tuple(flat)
        if names not in self.known:
            self.known[names] = roles_of(names) if len(self.known) < 10_000 else Roles(None, None, None, None)
        roles = self.known[names]
        self.first = self.first or names
        self.has_sql = self.has_sql or roles.sql is not None
        return entry_of(flat, roles, source=source, zone=self.zone)

    def check(self) -> None:
        """Raise a `LogError` if there were records, and none had a column with SQL."""
        if self.first and not self.has_sql:
            raise no_sql(self.name, self.first)


def no_sql(name: str, columns: Sequence[str]) -> LogError:
    """Return the error of a log without a column of SQL, with the columns that it has."""
    shown = ", ".join(quoted(column) for column in columns[:20])
    known = ", ".join(("query", "sql", "statement", "query_text", "statement_text"))
    return LogError(f"The log {quoted(name)} has no column with SQL; name it one of {known}. There are: {shown}.")


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a record, followed by those of the records in it, one level deep."""
    inner = {f"{k}.{n}": v for k, part in record.items() if isinstance(part, dict) for n, v in part.items()}
    return {**record, **inner}


def _json(name: str, path: Path, zone: tzinfo) -> Iterator[LogEntry]:
    columns = _Columns(name, zone)
    if _is_document(path):
        for number, record in enumerate(_records(name, path), 1):
            yield columns.entry(record, f"{name}:{number}")
        columns.check()
        return
    for number, line in _lines(path):
        if line is not None and not line.strip():
            continue
        try:
            record = json.loads(line or "")
        except (ValueError, RecursionError):
            columns.has_sql = columns.has_sql or not columns.first
            yield LogEntry(f"{name}:{number}", problem="The line is no JSON, or too long.")
            continue
        yield columns.entry(record, f"{name}:{number}")
    columns.check()


def _is_document(path: Path) -> bool:
    """Tell whether the file is one JSON value over many lines, rather than one per line."""
    for _, line in _lines(path):
        text = (line or "").strip()
        if text:
            return text.startswith("[") or text == "{" or _opens(text)
    return False


def _opens(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text.startswith("{") and not text.endswith("}")
    # A document on a single line: {"queries": [...]}
    return isinstance(value, dict) and roles_of(tuple(_flat(value))).sql is None and _listed(value) is not None


def _listed(document: Mapping[str, object]) -> list[object] | None:
    lists = [part for part in document.values() if isinstance(part, list)]
    return lists[0] if len(lists) == 1 else None


def _records(name: str, path: Path) -> list[object]:
    with open_text(path) as stream:
        text = stream.read(_LONGEST_DOCUMENT)
        if stream.read(1):
            raise LogError(f"The log {quoted(name)} is too large for one JSON value. Write one record a line (.jsonl).")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise LogError(f"The log {quoted(name)} is no JSON: neither one record a line nor one list of them.") from None
    if isinstance(document, dict):
        listed = _listed(document)
        return [document] if listed is None else listed
    return document if isinstance(document, list) else [document]


def _csv(name: str, path: Path, zone: tzinfo) -> Iterator[LogEntry]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    with open_text(path) as stream:
        header = stream.readline(_LONGEST_FIELD)
        if not header.strip():
            return
        delimiter, names = _header(header)
        roles = roles_of(tuple(names))
        if roles.sql is None:
            raise no_sql(name, names)
        reader = csv.reader(stream, delimiter=delimiter)
        while True:
            line = reader.line_num + 2
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                yield LogEntry(f"{name}:{line}", problem="The row is no CSV, or too long. Look for an open quote.")
                continue
            if row:
                yield entry_of(dict(zip(names, row, strict=False)), roles, source=f"{name}:{line}", zone=zone)


def _header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter that gives a column of SQL, or else the most columns, and the column names."""
    rows = {mark: next(csv.reader([line], delimiter=mark), []) for mark in _DELIMITERS}
    best = max(rows, key=lambda mark: (roles_of(tuple(rows[mark])).sql is not None, len(rows[mark])))
    return best, [column.strip() for column in rows[best]]


def _parquet(name: str, path: Path, zone: tzinfo) -> Iterator[LogEntry]:
    try:
        file = pq.ParquetFile(path)
    except BROKEN:
        raise LogError(f"The log {quoted(name)} is no Parquet file, or a damaged one.") from None
    with file:
        roles = roles_of(tuple(file.schema_arrow.names))
        if roles.sql is None:
            raise no_sql(name, file.schema_arrow.names)
        row = 0
        for batch in file.iter_batches(batch_size=4096, columns=roles.columns):
            for record in _microseconds(batch).to_pylist():
                row += 1
                yield entry_of(record, roles, source=f"{name}:{row}", zone=zone)


def _microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return times in microseconds: Python has no finer ones."""
    for place, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            coarse = batch.column(place).cast(pa.timestamp("us", column.type.tz), safe=False)
            batch = batch.set_column(place, column.name, coarse)
    return batch
