"""The history's tables, and the migrations from the schemas of older versions of zonal.

Each migration is written against the schema that the one before it left, and never changed again. SQLite and
PostgreSQL run all pending ones in one transaction, under a lock: processes that open an old or empty database at the
same time migrate it once. Other databases may commit every statement, so each step first checks whether it was done.
"""

from collections.abc import Callable
from datetime import datetime, timezone

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    DateTime,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateColumn
from sqlalchemy.types import TypeDecorator

from zonal.history.records import HistoryError

_LOCK = 0x7A6F6E616C
"""Key of PostgreSQL's advisory lock while the schema or a ledger changes: `zonal` in ASCII."""

_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""The type of ids: SQLite numbers only INTEGER keys by itself."""
_LONG = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


class Moment(TypeDecorator[datetime]):
    """A time in UTC: given with its time zone, stored without, so that every database compares it alike."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> DateTime | mysql.DATETIME:
        """Keep microseconds where a database would round them."""
        return mysql.DATETIME(fsp=6) if dialect.name in ("mysql", "mariadb") else DateTime()

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Convert a time to UTC."""
        return None if value is None else value.astimezone(timezone.utc).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Mark a time as UTC."""
        return None if value is None else value.replace(tzinfo=timezone.utc)


def _table_columns() -> list[Column[object]]:
    """Return the columns that identify a table; `location_key` is a hash, because indexes limit the length of text."""
    return [
        Column("id", _NUMBER, primary_key=True),
        Column("location_key", String(64), nullable=False),
        Column("location", Text, nullable=False),
        Column("table_name", Text, nullable=False),
        Column("format", String(32), nullable=False),
        Column("version", BigInteger),
    ]


def _whole(name: str, *, unknown: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=unknown)


def _share(name: str, *, unknown: bool = False) -> Column[float]:
    return Column(name, Double, nullable=unknown)


def _first(metadata: MetaData) -> tuple[Table, Table, Table]:
    """Return the tables of version 1."""
    schema = Table("zonal_schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False))
    audits = Table(
        "zonal_audits",
        metadata,
        *_table_columns(),
        Column("audited", Moment, nullable=False),
        _whole("queries"),
        _share("ratio", unknown=True),
        _share("byte_ratio", unknown=True),
        _share("file_share"),
        _share("byte_share"),
        _share("partition_byte_share"),
        _share("selectivity", unknown=True),
        _share("excess_share"),
        Column("alerts", _LONG, nullable=False),
        Column("culprit", _LONG, nullable=False),
        Column("layout", _LONG),
    )
    runs = Table(
        "zonal_runs",
        metadata,
        *_table_columns(),
        Column("finished", Moment, nullable=False),
        Column("run", String(64), nullable=False),
        Column("layout", _LONG, nullable=False),
        *map(_whole, ("rows", "removed_files", "removed_bytes", "added_files", "added_bytes")),
        _whole("queries", unknown=True),
        _share("share_before", unknown=True),
        _share("share_predicted", unknown=True),
        _share("share_after", unknown=True),
        Column("seconds", Double, nullable=False),
    )
    return schema, audits, runs


def _second(audits: Table, runs: Table) -> None:
    """Add the columns and indexes of version 2."""
    audits.append_column(_share("fresh_share", unknown=True))
    Index("zonal_audits_by_table", audits.c.location_key, audits.c.audited)
    Index("zonal_runs_by_table", runs.c.location_key, runs.c.finished)


def _third(runs: Table) -> None:
    """Add the columns of version 3."""
    runs.append_column(_whole("predicted_files", unknown=True))
    runs.append_column(_whole("predicted_bytes", unknown=True))


def _fourth(metadata: MetaData) -> Table:
    """Return the table that version 4 adds; a run has one entry."""
    ledger = Table(
        "zonal_ledger",
        metadata,
        *_table_columns(),
        Column("finished", Moment, nullable=False),
        Column("run", String(64), nullable=False),
        Column("kind", String(16), nullable=False),
        *map(_whole, ("commits", "arrived_bytes")),
        _whole("arrived_rows", unknown=True),
        _whole("rewritten_bytes"),
        Column("exact", Boolean, nullable=False),
        _whole("removed_files", unknown=True),
        _whole("added_files", unknown=True),
        Column("layout", _LONG),
        _share("lookup_share", unknown=True),
        _share("fresh_lookup_share", unknown=True),
        _whole("queries", unknown=True),
        _share("query_share", unknown=True),
        _share("fresh_query_share", unknown=True),
    )
    Index("zonal_ledger_by_table", ledger.c.location_key, ledger.c.finished)
    Index("zonal_ledger_by_run", ledger.c.location_key, ledger.c.run, unique=True)
    return ledger


SCHEMA, AUDITS, RUNS = _first(MetaData())
_second(AUDITS, RUNS)
_third(RUNS)
LEDGER = _fourth(MetaData())


def _create(connection: Connection) -> None:
    """Create the tables of version 1."""
    metadata = MetaData()
    _first(metadata)
    metadata.create_all(connection)


def _add_fresh_share(connection: Connection) -> None:
    """Add the column of what a fresh layout would read, and indexes by table."""
    _add_columns(connection, AUDITS, "fresh_share")
    inspector = inspect(connection)
    for table in (AUDITS, RUNS):
        existing = {index["name"] for index in inspector.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in existing:
                index.create(connection)


def _add_predicted_files(connection: Connection) -> None:
    """Add the columns of a rewrite's expected files and bytes."""
    _add_columns(connection, RUNS, "predicted_files", "predicted_bytes")


def _create_ledger(connection: Connection) -> None:
    """Create the table of what arrived and what was rewritten."""
    metadata = MetaData()
    _fourth(metadata)
    metadata.create_all(connection)


def _add_columns(connection: Connection, table: Table, *names: str) -> None:
    existing = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for name in names:
        if name not in existing:
            column = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE {table.name} ADD {column}"))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create, _add_fresh_share, _add_predicted_files, _create_ledger)
"""In order; a database's version is the number of migrations that it has had."""


def version_of(connection: Connection, shown: str = "") -> int:
    """Return the schema's version, 0 where there is no history yet; a newer one is a `HistoryError`."""
    if not inspect(connection).has_table("zonal_schema"):
        return 0
    version = max(connection.execute(select(SCHEMA.c.version)).scalars().all(), default=0)
    if version > len(MIGRATIONS):
        named = f"The history {shown}" if shown else "The history"
        raise HistoryError(
            f"{named} was made by a newer zonal: its schema is version {version}, and this zonal knows "
            f"{len(MIGRATIONS)}. Upgrade zonal, or name another database."
        )
    return version


def lock(connection: Connection) -> None:
    """Let no other process change the schema or a ledger during the transaction; SQLite locks all by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def migrate(connection: Connection) -> None:
    """Bring the schema up to date in the connection's transaction; of several processes, the first one does it."""
    lock(connection)
    version = version_of(connection)
    for migration in MIGRATIONS[version:]:
        migration(connection)
    if version < len(MIGRATIONS):
        connection.execute(delete(SCHEMA))
        connection.execute(insert(SCHEMA).values(version=len(MIGRATIONS)))
