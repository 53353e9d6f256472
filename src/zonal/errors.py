"""Errors and advice that speak to people: what happened, to which name or value, and what to do."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches


class ZonalError(Exception):
    """Root of every error that zonal raises on purpose."""


class LayoutError(ZonalError):
    """A layout that can't be read, or that doesn't fit the data."""


class ColumnError(ZonalError):
    """A column that doesn't exist, or whose type can't be clustered by."""


class RanksError(ZonalError):
    """Stored ranks that can't be read, or that don't fit the data."""


class TableError(ZonalError):
    """A table that doesn't exist or can't be read."""


class ConflictError(TableError):
    """Another writer changed files that a rewrite wanted to replace; nothing was committed."""

    def __init__(self, message: str, paths: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.paths = frozenset(paths)
        """The files that can't be replaced any more; empty where nothing of the rewrite can be kept."""


class CommitUnknownError(TableError):
    """The catalog or the storage didn't say whether a commit succeeded: its new files must stay."""


class PredicateError(ZonalError):
    """A WHERE clause that can't be read, or that doesn't fit the table."""


class JavaError(ZonalError):
    """No Java, or not one that Spark runs on."""


class ZonalAdvice(UserWarning):
    """A layout that works, but that experience advises against."""


class ZonalNotice(UserWarning):
    """Why a run waits, and for what."""


def quoted(name: str, *, limit: int = 80) -> str:
    """Quote an untrusted name for a message: control characters escaped, at most `limit` characters.

    >>> quoted("ship" + chr(10) + "date")
    "'ship\\\\ndate'"
    """
    return repr(_clipped(name, limit))


_FLAGS: ContextVar[bool | None] = ContextVar("_FLAGS", default=None)
"""Whether messages name flags; None: parameters of Python."""
_OTHER_FLAGS = {
    "half_life_days": "--half-life",
    "names": "--name",
    "read_as": "--as",
    "scope_where": "--where",
    "storage_options": "--storage-option",
    "versions": "--history",
    "views": "--view",
}
"""Parameters whose flag isn't their own name; `tests/test_flags.py` holds all of them against the commands."""


_VALUES = {
    "alert_ratio": ("alerts=Alerts", "ratio"),
    "alert_window": ("alerts=Alerts", "window"),
    "alert_worse": ("alerts=Alerts", "worse"),
    "cap": ("queries=Logs", "cap"),
    "commit_every": ("scope=Scope", "commit_every"),
    "compression": ("files=NewFiles", "compression"),
    "conf": ("spark=Spark", "conf"),
    "core_hour_price": ("prices=Prices", "core_hour"),
    "full": ("scope=Scope", "full"),
    "half_life_days": ("queries=Logs", "half_life_days"),
    "keep_days": ("prices=Prices", "keep_days"),
    "keep_properties": ("files=NewFiles", "keep_properties"),
    "master": ("spark=Spark", "master"),
    "max_amplification": ("scope=Scope", "max_amplification"),
    "max_bytes": ("scope=Scope", "max_bytes"),
    "names": ("queries=Logs", "names"),
    "pays_within": ("scope=Scope", "pays_within"),
    "remote": ("spark=Spark", "remote"),
    "sample": ("sampling=Sampling", "queries"),
    "sample_rows": ("sampling=Sampling", "rows"),
    "scan_price": ("prices=Prices", "scan"),
    "scope_where": ("scope=Scope", "where"),
    "seed": ("sampling=Sampling", "seed"),
    "since": ("queries=Logs", "since"),
    "storage_price": ("prices=Prices", "storage"),
    "verify": ("files=NewFiles", "verify"),
}
"""Options that are fields of a value in Python: the parameter with the value's class, and the field."""


@contextmanager
def naming_flags(flags: bool = True) -> Iterator[None]:
    """Let messages name options by their flags, as the command line has them, or by their keys in a file."""
    before = _FLAGS.set(flags)
    try:
        yield
    finally:
        _FLAGS.reset(before)


def option(name: str, value: object = None) -> str:
    """Name an option as its reader gives it, with a value or without: by a parameter, or by a flag.

    >>> option("where"), option("by", ["ts", "id"])
    ('where', "by=['ts', 'id']")
    >>> option("max_bytes"), option("max_bytes", -1)
    ('scope=Scope(max_bytes=…)', 'scope=Scope(max_bytes=-1)')
    >>> with naming_flags():
    ...     option("read_as"), option("sample", 0), option("by", ["ts", "id"]), option("layout", "zorder(ts, id)")
    ('--as', '--sample 0', '--by ts,id', "--layout 'zorder(ts, id)'")
    """
    if not _FLAGS.get():
        given = "" if value is None else f"={quoted(value) if isinstance(value, str) else in_line(value)}"
        if _FLAGS.get() is False or name not in _VALUES:
            return f"{name}{given}"
        holder, part = _VALUES[name]
        return f"{holder}({part}{given or '=…'})"
    flag = _OTHER_FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is None:
        return flag
    text = ",".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
    return f"{flag} {shlex.quote(_clipped(text, 80))}"


def in_python(text: str) -> str:
    """Return what makes sense in Python alone, such as that an option may be None; nothing on the command line."""
    return "" if _FLAGS.get() else text


def in_line(value: object) -> str:
    """Return a value of any class in one line of at most 80 characters."""
    return _clipped(" ".join(repr(value).split()), 80)


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def suggestion(name: str, known: Iterable[str]) -> str:
    """End a message with the nearest known name, or with what there is.

    >>> suggestion("shipdat", ["shipdate", "partkey"])
    "Did you mean 'shipdate'?"
    >>> suggestion("zzz", ["shipdate", "partkey"])
    "There are: 'shipdate', 'partkey'."
    """
    names = list(dict.fromkeys(known))
    by_folded = {other[:200].casefold(): other for other in reversed(names)}
    if near := get_close_matches(name[:200].casefold(), by_folded, n=1):
        return f"Did you mean {quoted(by_folded[near[0]])}?"
    if not names:
        return "There are none."
    shown = ", ".join(quoted(other) for other in names[:8])
    return f"There are: {shown}{f' and {len(names) - 8} more' if len(names) > 8 else ''}."
