"""Read a file of tables to audit, with the logs and limits of each.

The file is TOML. It has one `[[tables]]` per table, and `[defaults]` may give any of its keys but `table` for all of
them; a table's own key replaces the default. Paths in the file are relative to the file's own folder.

    database = "sqlite:///history.db"   # where audits are kept; optional
    webhook = "https://HOST/PATH"       # where alerts are sent as JSON; optional

    [defaults]
    queries = ["logs/"]
    alert_ratio = 0.3

    [[tables]]
    table = "delta:/lake/events"        # as on the command line

    [[tables]]
    table = "iceberg:shop.orders"
    catalog = "prod"
    names = ["orders", "shop.orders"]   # by which the logs know it, besides its own
    queries = ["logs/orders.jsonl"]
    dialect = "trino"
    timezone = "Europe/Rome"
    views = { recent = "views/recent.sql" }
    half_life_days = 30
    cap = 0.2                           # of all weight, what one query may have; false: no limit
    since = "7d"                        # or a date, or a time
    sample = 1000                       # the most queries to replay
    sample_rows = 60000                 # rows to look at
    metadata_only = false               # true: read no rows and footers
    hide_literals = false               # true: show no values that queries compare with
    alert_ratio = 0.2                   # false: no such alert
    alert_worse = 0.5                   # false: no such alert
    alert_window = 10

    [tables.storage_options]
    "s3.region" = "eu-south-1"

Keys that aren't known and values of another type are refused, with the table's number.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any

from zonal.auditing.drift import Alerts
from zonal.display import Display
from zonal.errors import ZonalError, naming_flags, quoted, suggestion
from zonal.history.database import within
from zonal.history.records import HistoryError
from zonal.predicates.calendar import zone_of
from zonal.sql.statement import known_dialect
from zonal.study.audited_version import Auditing
from zonal.study.sampling import SAMPLE_QUERIES, SAMPLE_ROWS, Sampling
from zonal.tables.names import is_in_catalog, split_format
from zonal.workload.logs import Logs
from zonal.workload.since import parse_since
from zonal.workload.view_files import read_view

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 1_000_000
_LARGEST = 1e15


class ConfigError(ZonalError):
    """A file of tables can't be read, or has a key or a value that is wrong."""


@dataclass(frozen=True)
class TableConfig:
    """A table, its logs, and when an alert is due; see `zonal.audit` for what each part means."""

    table: str
    queries: tuple[str, ...]
    names: tuple[str, ...] = ()
    dialect: str | None = None
    timezone: str = "UTC"
    views: Mapping[str, str] = field(default_factory=dict)
    """The queries of views by name: the text of their files."""
    half_life_days: float | None = None
    cap: float | None = 0.2
    since: str | None = None
    sample: int = SAMPLE_QUERIES
    sample_rows: int = SAMPLE_ROWS
    metadata_only: bool = False
    hide_literals: bool = False
    alert_ratio: float | None = Alerts.ratio
    alert_worse: float | None = Alerts.worse
    alert_window: int = Alerts.window
    catalog: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """They may hold secrets, and are left out of `repr`."""

    def logs(self, now: datetime | None = None) -> Logs:
        """Return the table's logs; a duration in `since` is counted back from `now`."""
        since = None if self.since is None else parse_since(self.since, now)
        return Logs(
            self.queries, self.names, self.dialect, self.timezone, self.views, self.half_life_days, self.cap, since
        )

    def auditing(self, *, seed: int = 0) -> Auditing:
        """Return how to audit the table."""
        return Auditing(
            Sampling(self.sample, self.sample_rows, seed, not self.metadata_only),
            Alerts(self.alert_ratio, self.alert_worse, self.alert_window),
            Display(picture=False, hide_literals=self.hide_literals),
        )


@dataclass(frozen=True)
class Config:
    """The content of a file: at least one table, and none twice."""

    path: Path
    database: str | None = field(repr=False)
    """A URL, perhaps with a password."""
    webhook: str | None = field(repr=False)
    """A URL, which is a secret itself."""
    tables: tuple[TableConfig, ...]


def read_config(path: str | os.PathLike[str]) -> Config:
    """Read a file of tables, and check everything in it; errors name its keys."""
    with naming_flags(False):
        return _read(path)


def _read(path: str | os.PathLike[str]) -> Config:
    path = Path(path)
    shown = quoted(str(path), limit=300)
    document = _parsed(path, shown)
    _known(document, ("database", "webhook", "defaults", "tables"), shown)
    folder = path.absolute().parent
    database = _database(document["database"], f"{shown}: database", folder) if "database" in document else None
    webhook = _text(document["webhook"], f"{shown}: webhook") if "webhook" in document else None
    defaults = _entry(document.get("defaults", {}), f"{shown}: [defaults]", folder, but={"table"})
    listed = document.get("tables", [])
    if not isinstance(listed, list) or not listed:
        raise ConfigError(f"{shown} names no tables: write [[tables]] once for each, with table and queries below it.")
    tables = tuple(_table(each, number, shown, folder, defaults) for number, each in enumerate(listed, 1))
    _refuse_twice(tables, shown)
    return Config(path, database, webhook, tables)


def _database(value: object, where: str, folder: Path) -> str:
    try:
        return within(_text(value, where), folder)
    except HistoryError as error:
        raise ConfigError(f"{where}: {error}") from None


def _parsed(path: Path, shown: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{shown} can't be read: {error.strerror}.") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{shown} has more than {MOST_BYTES:,} bytes: that is no file of tables.")
    try:
        return tomllib.loads(data.decode())
    except RecursionError:
        raise ConfigError(f"{shown} is no TOML: it is nested too deeply.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{shown} is not text in UTF-8.") from None
    except ValueError as error:
        raise ConfigError(f"{shown} is no TOML: {error}.") from None


def _known(given: Mapping[str, object], known: "tuple[str, ...]", where: str) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{where} has an unknown key {quoted(key)}. {suggestion(key, known)}")


def _table(given: object, number: int, shown: str, folder: Path, defaults: Mapping[str, object]) -> TableConfig:
    """Read one table over the defaults."""
    named = given.get("table") if isinstance(given, dict) else None
    where = f"{shown}: table {number}{f' ({quoted(named)})' if isinstance(named, str) else ''}"
    values: dict[str, Any] = {**defaults, **_entry(given, where, folder)}
    for key in ("table", "queries"):
        if not values.get(key):
            example = 'table = "delta:/lake/events"' if key == "table" else 'queries = ["logs/"]'
            raise ConfigError(f"{where} has no {key}: give it, as in {example}.")
    table = TableConfig(**values)
    try:
        table.auditing().check()
        table.logs()
        zone_of(table.timezone)
        if table.dialect is not None:
            known_dialect(table.dialect)
    except ZonalError as error:
        raise ConfigError(f"{where}: {error}") from None
    return table


def _entry(given: object, where: str, folder: Path, but: frozenset[str] | set[str] = frozenset()) -> dict[str, object]:
    """Read the keys of a table, or of `[defaults]`."""
    if not isinstance(given, dict):
        raise ConfigError(f"{where} is {_kind(given)}: it must be a table of keys.")
    _known(given, tuple(each.name for each in fields(TableConfig) if each.name not in but), where)
    return {key: _READERS[key](value, f"{where}: {key}", folder) for key, value in given.items()}


def _refuse_twice(tables: tuple[TableConfig, ...], shown: str) -> None:
    seen: dict[tuple[str, str | None], int] = {}
    for number, each in enumerate(tables, 1):
        key = split_format(each.table)[1].rstrip("/"), each.catalog
        if key in seen:
            raise ConfigError(
                f"{shown}: table {number} ({quoted(each.table)}) is table {seen[key]} again: leave one out."
            )
        seen[key] = number


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")


def _wrong(value: object, where: str, wanted: str) -> ConfigError:
    return ConfigError(f"{where} is {_kind(value)}: it must be {wanted}.")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, where, "a text")
    if not value.strip():
        raise ConfigError(f"{where} is empty: give a text, or leave it out.")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _wrong(value, where, 'a list of texts, as in ["a", "b"]')
    return tuple(_text(each, f"{where}, number {number},") for number, each in enumerate(value, 1))


def _pairs(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _wrong(value, where, 'a table of texts, as in { name = "text" }')
    return {key: _text(each, f"{where}.{quoted(key)}") for key, each in value.items()}


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, where, "true or false")
    return value


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(value, where, "a whole number")
    if not -_LARGEST < value < _LARGEST:
        raise ConfigError(f"{where} is no number that can be reckoned with.")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, where, "a number")
    if not -_LARGEST < value < _LARGEST:
        raise ConfigError(f"{where} is no number that can be reckoned with.")
    return float(value)


def _number_or_off(value: object, where: str) -> float | None:
    """Read a number; TOML has no null, so false switches off."""
    if value is True:
        raise _wrong(value, where, "a number, or false to switch it off")
    return None if value is False else _number(value, where)


def _half_life(value: object, where: str) -> float:
    if (days := _number(value, where)) <= 0:
        raise ConfigError(f"{where} is {days:g}: it must be above 0.")
    return days


def _cap(value: object, where: str) -> float | None:
    cap = _number_or_off(value, where)
    if cap is not None and not 0 < cap <= 1:
        raise ConfigError(f"{where} is {cap:g}: it must be above 0 and at most 1, or false for none.")
    return cap


def _since(value: object, where: str) -> str:
    return value.isoformat() if isinstance(value, date) else _text(value, where)


def _in_folder(path: str, folder: Path) -> str:
    return path if "://" in path else str(folder / path)


def _logs(value: object, where: str, folder: Path) -> tuple[str, ...]:
    return tuple(_in_folder(path, folder) for path in _texts(value, where))


def _name(value: object, where: str, folder: Path) -> str:
    """Read a table's name; a path is relative to the folder, a name in a catalog stays as it is."""
    name = _text(value, where)
    if is_in_catalog(name):
        return name
    kind, path = split_format(name)
    return f"{kind}:{_in_folder(path, folder)}" if kind else _in_folder(path, folder)


def _views(value: object, where: str, folder: Path) -> dict[str, str]:
    return {name: read_view(folder / path, f"{where}.{quoted(name)}") for name, path in _pairs(value, where).items()}


def _anywhere(read: Callable[[object, str], object]) -> Callable[[object, str, Path], object]:
    return lambda value, where, _: read(value, where)


_READERS: Mapping[str, Callable[[object, str, Path], object]] = {
    "table": _name,
    "queries": _logs,
    "names": _anywhere(_texts),
    "dialect": _anywhere(_text),
    "timezone": _anywhere(_text),
    "views": _views,
    "half_life_days": _anywhere(_half_life),
    "cap": _anywhere(_cap),
    "since": _anywhere(_since),
    "sample": _anywhere(_whole),
    "sample_rows": _anywhere(_whole),
    "metadata_only": _anywhere(_flag),
    "hide_literals": _anywhere(_flag),
    "alert_ratio": _anywhere(_number_or_off),
    "alert_worse": _anywhere(_number_or_off),
    "alert_window": _anywhere(_whole),
    "catalog": _anywhere(_text),
    "storage_options": _anywhere(_pairs),
}
