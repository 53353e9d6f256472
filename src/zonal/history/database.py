"""The history's database: its URL, and connections that behave alike in every database."""

import os
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SAWarning

from zonal.errors import quoted
from zonal.history.place import default_file
from zonal.history.records import HistoryError

_BUSY_MILLISECONDS = 30_000
"""How long to wait for another process that writes."""
_CONNECT_SECONDS = 10
"""How long a server may take to answer."""
_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
"""The driver of a URL without one; SQLAlchemy's own choice depends on its version."""
_PACKAGES = {"psycopg": "psycopg[binary]", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}
_SECRET = re.compile(r"pass|secret|token|key", re.IGNORECASE)
_FORMS = "Give sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE or another URL of SQLAlchemy"


def url_of(given: str | None) -> URL:
    """Return the URL that was given, or $ZONAL_DATABASE, or SQLite in the user's state folder."""
    text = given if given is not None else os.environ.get("ZONAL_DATABASE") or None
    if text is None:
        return URL.create("sqlite", database=str(default_file()))
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):  # their messages may quote a password
        url = None
    if url is None or not text.isprintable() or "@" in (url.host or ""):  # an @ in the password splits it
        source = "The database's URL" if given is not None else "The URL in $ZONAL_DATABASE"
        raise HistoryError(f"{source} can't be read. {_FORMS}; in user and password, write @ : / as %40 %3A %2F.")
    return url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))


def within(url: str, folder: Path) -> str:
    """Resolve a relative path of SQLite against a folder; other URLs stay as they are.

    >>> within("sqlite:///history.db", Path("/etc/zonal"))
    'sqlite:////etc/zonal/history.db'
    >>> within("postgresql://db/lake", Path("/etc/zonal"))
    'postgresql://db/lake'
    """
    path = file_of(url_of(url))
    if path is None or path.is_absolute():
        return url
    return url_of(url).set(database=str(folder / path)).render_as_string(hide_password=False)


def file_of(url: URL) -> Path | None:
    """Return SQLite's file; None for other databases, for memory, and for URIs, which SQLite itself parses."""
    database = url.database or ""
    if url.get_backend_name() != "sqlite" or database in ("", ":memory:") or database.startswith("file:"):
        return None
    return Path(database)


def shown_url(url: URL) -> str:
    """Return a URL for people, without its password, and without options, which may hold one."""
    return quoted(url.set(query={}).render_as_string(hide_password=True), limit=200)


def problem_text(error: Exception, url: URL) -> str:
    """Return the first line of a database's error, without the URL's secrets."""
    message = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    for secret in sorted(_secrets(url), key=len, reverse=True):
        message = message.replace(secret, "***")
    line = " ".join(message.splitlines()[0].split())[:300]
    return "".join(char if char.isprintable() else "?" for char in line).rstrip(".") + "."


def _secrets(url: URL) -> list[str]:
    secrets = [url.password] if url.password else []
    for name, value in url.query.items():
        if _SECRET.search(name):
            secrets.extend((value,) if isinstance(value, str) else value)
    return [secret for secret in map(str, secrets) if secret]


def connect_to(url: URL) -> Engine:
    """Return an engine for the database; nothing is connected yet."""
    shown = shown_url(url)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # about options that it ignores
            engine = create_engine(url, connect_args=_timeouts(url))
    except NoSuchModuleError:
        raise HistoryError(f"SQLAlchemy knows no database {quoted(url.drivername)} as in {shown}. {_FORMS}.") from None
    except ImportError as error:
        raise HistoryError(_missing(error, shown)) from None
    except (ArgumentError, TypeError, ValueError) as error:
        raise HistoryError(f"The database {shown} can't be used: {problem_text(error, url)} {_FORMS}.") from None
    if engine.dialect.is_async:
        raise HistoryError(f"The driver of {shown} is an asynchronous one. {_FORMS}.")
    if engine.dialect.name == "sqlite":
        _keep_transactions(engine, wait="timeout" not in url.query)
    return engine


def _timeouts(url: URL) -> dict[str, object]:
    """Return PostgreSQL's timeouts where the URL doesn't set them; other databases keep their defaults."""
    if not url.drivername.startswith("postgresql+psycopg"):
        return {}
    waits = {"connect_timeout": _CONNECT_SECONDS, "options": f"-c lock_timeout={_BUSY_MILLISECONDS}"}
    return {name: value for name, value in waits.items() if name not in url.query}


def _missing(error: ImportError, shown: str) -> str:
    module = error.name or "driver"
    if module.partition(".")[0] != module or find_spec(module) is not None:
        return f"The driver for {shown} doesn't load: {error}"
    return f"No driver for {shown}: install it, as in pip install '{_PACKAGES.get(module, module)}'."


def _keep_transactions(engine: Engine, *, wait: bool) -> None:
    """Make SQLite's transactions include CREATE and ALTER, which Python's driver would commit one by one."""

    def connected(connection: Any, _: object) -> None:  # noqa: ANN401 - of whatever driver
        connection.isolation_level = None  # the driver begins no transaction by itself
        if wait:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
            cursor.close()

    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("zonal_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
