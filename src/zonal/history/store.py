"""The store of the history's records, in SQLite or any database that SQLAlchemy reaches."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from hashlib import sha256
from types import TracebackType
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Double,
    Engine,
    Integer,
    RowMapping,
    Select,
    Table,
    insert,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from zonal.errors import ZonalError, option, quoted
from zonal.history.database import connect_to, file_of, problem_text, shown_url, url_of
from zonal.history.records import AuditRecord, HistoryError, LedgerRecord, OpenHistory, RunRecord
from zonal.history.schema import AUDITS, LEDGER, MIGRATIONS, RUNS, lock, migrate, version_of

MOST_RECORDS = 100
"""The default number of a table's newest records."""
_LARGEST = 2**63
_MOST_LIMIT = 2**31 - 1
"""The largest LIMIT that every database takes."""
_COLUMN = {"table": "table_name"}
"""Fields whose column has another name: `table` is a word of SQL."""


class History(OpenHistory):
    """The records of audits and rewrites, and the ledgers of tables.

    Nothing is created before the first record is added; until then reading finds nothing. A database of an older zonal
    is migrated when it is opened, one of a newer zonal refused. Texts are kept but for what databases can't store: zero
    bytes and lone surrogates become `\\x00` and `\\udc80`.
    """

    def __init__(self, engine: Engine, url: URL) -> None:
        self._engine = engine
        self._url = url
        self._current = False

    @classmethod
    def open(cls, url: str | None = None) -> "History":
        """Open the database with this URL, or with $ZONAL_DATABASE, or SQLite in the user's state folder.

        `sqlite:///PATH`, `postgresql://USER@HOST/DATABASE`, or what else SQLAlchemy knows. No error shows a password.
        """
        resolved = url_of(url)
        history = cls(connect_to(resolved), resolved)
        try:
            history._is_there()
        except ZonalError:
            history.close()
            raise
        return history

    def __enter__(self) -> "History":
        """Return itself: a `with` closes it at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @property
    def name(self) -> str:
        """The database's URL for people, without password and options."""
        return shown_url(self._url)

    def add_audit(self, record: AuditRecord) -> None:
        """Add an audit; when this returns, it is stored."""
        self._add(AUDITS, record)

    def add_run(self, record: RunRecord) -> None:
        """Add a rewrite; when this returns, it is stored."""
        self._add(RUNS, record)

    def audits(self, location: str, *, limit: int = MOST_RECORDS) -> tuple[AuditRecord, ...]:
        """Return a table's newest audits, oldest first."""
        return tuple(AuditRecord(**row) for row in self._newest(AUDITS, AUDITS.c.audited, location, limit))

    def runs(self, location: str, *, limit: int = MOST_RECORDS) -> tuple[RunRecord, ...]:
        """Return a table's newest rewrites, oldest first."""
        return tuple(RunRecord(**row) for row in self._newest(RUNS, RUNS.c.finished, location, limit))

    def ledger(self, location: str) -> tuple[LedgerRecord, ...]:
        """Return a table's whole ledger, oldest first."""
        rows = self._newest(LEDGER, LEDGER.c.finished, location, _MOST_LIMIT)
        return tuple(LedgerRecord(**row) for row in rows)

    def keep_ledger(self, location: str, entries: Callable[[tuple[LedgerRecord, ...]], Iterable[LedgerRecord]]) -> None:
        """Add entries to a table's ledger, which `entries` is given as it is; one of a known run replaces it.

        No other process changes the ledger meanwhile, in SQLite and PostgreSQL.
        """
        with self._changing() as connection:
            lock(connection)
            rows = connection.execute(_of_table(LEDGER, LEDGER.c.finished, location)).mappings().all()
            known = tuple(LedgerRecord(**_fields_of(row, LEDGER, self.name)) for row in reversed(rows))
            for row in map(_row_of, entries(known)):
                same = (LEDGER.c.location_key == row["location_key"]) & (LEDGER.c.run == row["run"])
                if not connection.execute(update(LEDGER).where(same).values(row)).rowcount:
                    connection.execute(insert(LEDGER).values(row))

    def _add(self, table: Table, record: AuditRecord | RunRecord) -> None:
        row = _row_of(record)
        with self._changing() as connection:
            connection.execute(insert(table).values(row))

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        """Open a transaction in which the schema is the newest one."""
        with self._writing() as connection:
            if not self._current:
                migrate(connection)
            yield connection
        self._current = True

    def _newest(self, table: Table, time: "Column[datetime]", location: str, limit: int) -> Iterator[dict[str, Any]]:
        """Yield the fields of a table's newest rows, oldest first."""
        if limit < 1:
            raise HistoryError(f"limit={limit} is not a positive number of records.")
        if not self._is_there():
            return
        with self._reading() as connection:
            newest = _of_table(table, time, location).limit(min(limit, _MOST_LIMIT))
            rows = connection.execute(newest).mappings().all()
        for row in reversed(rows):
            yield _fields_of(row, table, self.name)

    def _is_there(self) -> bool:
        """Tell whether the database has a history; one of an older schema is migrated first."""
        if self._current:
            return True
        path = file_of(self._url)
        with self._named_errors("read"):
            if path is not None and not path.exists():
                return False  # connecting would create the file
        with self._reading() as connection:
            version = version_of(connection, self.name)
        if version == 0:
            return False
        if version < len(MIGRATIONS):
            with self._writing() as connection:
                migrate(connection)
        self._current = True
        return True

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._named_errors("read"), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Open a transaction that writes; SQLite locks the file at its start, so that it can't fail in the middle."""
        path = file_of(self._url)
        with self._named_errors("written"):
            if path is not None:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._engine.connect().execution_options(zonal_writes=True) as connection, connection.begin():
                yield connection

    @contextmanager
    def _named_errors(self, done: str) -> Iterator[None]:
        """Turn a database's errors into one that names the database, without its password."""
        try:
            yield
        except (SQLAlchemyError, OSError, ValueError) as error:  # ValueError: a value is not of its column's type
            raise HistoryError(
                f"The history {self.name} can't be {done}: {problem_text(error, self._url)} Check that the database is "
                f"reachable and may be {done}, or name another one ({option('database')}, $ZONAL_DATABASE)."
            ) from None


def _of_table(table: Table, time: "Column[datetime]", location: str) -> Select[Any]:
    """Select a table's records, newest first."""
    columns = [each for each in table.c if each.name not in {"id", "location_key"}]
    of_table = select(*columns).where(table.c.location_key == _key_of(location))
    return of_table.order_by(time.desc(), table.c.id.desc())


def _row_of(record: AuditRecord | RunRecord | LedgerRecord) -> dict[str, object]:
    """Return a record as a row; a value that no database can store is refused by the name of its field."""
    row: dict[str, object] = {"location_key": _key_of(record.location)}
    for field in fields(record):
        row[_COLUMN.get(field.name, field.name)] = _stored(field.name, getattr(record, field.name))
    return row


def _stored(name: str, value: object) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return json.dumps([_text(str(item)) for item in value], ensure_ascii=False)
    if isinstance(value, datetime) and value.tzinfo is None:
        raise HistoryError(f"{name}={value} has no time zone.")
    if isinstance(value, float) and not math.isfinite(value):
        raise HistoryError(f"{name}={value} is not a number that can be remembered.")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise HistoryError(f"{name}={value} has more than 64 bits.")
    return value


def _text(value: str) -> str:
    return value.replace("\0", "\\x00").encode(errors="backslashreplace").decode()


def _key_of(location: str) -> str:
    """Return the key of a table's rows, whatever the database's collation and its limits of length."""
    return sha256(_text(location).encode()).hexdigest()


def _fields_of(found: RowMapping, table: Table, shown: str) -> dict[str, Any]:
    """Turn a row into the fields of a record; SQLite may hold texts where numbers belong."""
    row = {str(name): value for name, value in found.items()}
    for name, value in row.items():
        if isinstance(value, str | bytes) and isinstance(table.c[name].type, Integer | Double):
            raise HistoryError(f"The history {shown} has {name}={quoted(str(value))}, which is no number.")
    row["table"] = row.pop("table_name")
    if "alerts" in row:
        row["alerts"] = _texts(row["alerts"], shown)
    return row


def _texts(stored: str, shown: str) -> tuple[str, ...]:
    try:
        texts = json.loads(stored)
    except (ValueError, RecursionError):
        texts = None
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise HistoryError(f"The history {shown} has alerts that are no list of texts: {quoted(stored)}.")
    return tuple(texts)
