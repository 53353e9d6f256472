"""Build the shell command that an advice or an audit recommends."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.layouts.layout import TREE
from zonal.tables.names import full_name, is_only_copied
from zonal.tables.registry import unpinned
from zonal.values.sizes import format_size
from zonal.workload.logs import Logs

BLOCKED = "blocked"
"""The code of the warning that a table can't be rewritten in place."""


@dataclass(frozen=True)
class CommandOptions:
    """The arguments of `advise` or `audit` that the recommended command repeats."""

    table: str
    logs: Logs = field(default_factory=lambda: Logs(()))
    views: tuple[str, ...] = ()
    """As they were given: `NAME=FILE`."""
    catalog: str | None = None
    storage_options: tuple[str, ...] = ()
    """Names alone: the values may be secrets."""


def cluster_command(advice: Advice, given: CommandOptions) -> str | None:
    """Return the `zonal cluster` command for the best candidate; None where there is nothing to run.

    A curve is written out. A tree is learned again from the same logs, because its cuts are long, and values of
    the queries. `…` stands where something is to be filled in: values of storage options, and the place of a copy.
    """
    layout = None if advice.best is None else advice.best.layout
    if layout is None or advice.verdict != "cluster":
        return None
    words = ["zonal", "cluster", given.table]
    if layout.kind == TREE:
        words += ["--layout", TREE]
        words += _log_words(given)
        if layout.target_file_bytes is not None:
            words += ["--target-file-size", format_size(layout.target_file_bytes)]
    else:
        words += ["--layout", str(layout)]
    if any(warning.code == BLOCKED for warning in advice.warnings):
        words += ["--into", f"{advice.table.format}:…"]
    return _command([*words, *_place_words(given)])


def repair_command(audit: Audit, given: CommandOptions | None = None) -> str:
    """Return the command that clusters a table in its recorded layout again, or that finds one if it records none.

    Where every file is in the layout already, or in another one, the whole table is rewritten. `…` stands where
    something is to be filled in: values of storage options, which may be secrets, and the place of a copy of plain
    Parquet.
    """
    given = given or given_of(audit)
    table = unpinned(given.table)
    if audit.table.layout is None:
        return advise_command(audit, given)
    words = ["zonal", "cluster", table]
    words += ["--full"] if audit.judgment.outside == audit.judgment.in_others else []
    words += ["--into", f"{audit.table.format}:…"] if is_only_copied(audit.table.format) else []
    return _command([*words, *_place_words(given)])


def advise_command(audit: Audit, given: CommandOptions | None = None) -> str:
    """Return the command that looks for another layout, with the logs of the audit."""
    given = given or given_of(audit)
    return _command(["zonal", "advise", unpinned(given.table), *_log_words(given), *_place_words(given)])


def given_of(audit: Audit) -> CommandOptions:
    """Derive a table's name on the command line from its audit, if it isn't known how it was given."""
    return CommandOptions(full_name(audit.table.name, audit.table.format))


def _place_words(given: CommandOptions) -> Iterator[str]:
    """Yield the options that say where the table is."""
    if given.catalog is not None:
        yield from ("--catalog", given.catalog)
    for name in given.storage_options:
        yield from ("--storage-option", f"{name}=…")


def _command(words: Iterable[str]) -> str:
    return " ".join(map(shell_word, words))


def _log_words(given: CommandOptions) -> Iterator[str]:
    """Yield the options that say which logs to read, and how."""
    logs = given.logs
    for log in logs.paths or ("…",):
        yield from ("--queries", str(log))
    for name in logs.names:
        yield from ("--name", name)
    for view in given.views:
        yield from ("--view", view)
    options = {
        "--dialect": (logs.dialect, None),
        "--timezone": (logs.timezone, "UTC"),
        "--half-life": (logs.half_life_days, None),
        "--cap": (logs.cap, Logs.cap),
    }
    for option, (value, usual) in options.items():
        if value != usual:
            yield from (option, str(value))


def shell_word(word: str) -> str:
    """Quote a word for a shell; invisible characters are escaped as bash and zsh do it.

    >>> print(shell_word("zorder(ts, id)"), shell_word("day" + chr(10)), shell_word("…"))
    'zorder(ts, id)' $'day\\n' …
    """
    if word.isprintable():
        return word if word == "…" else shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + "'"
