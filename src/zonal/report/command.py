"""The command that does what an advice says, ready for a shell."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from zonal.advising.advice import Advice
from zonal.layouts.layout import DEFAULT_FILE_BYTES, TREE
from zonal.values.sizes import format_size
from zonal.workload.logs import Logs

BLOCKED = "blocked"
"""The code of the warning that a table can't be rewritten in place."""


@dataclass(frozen=True)
class Given:
    """What `advise` was given, as far as `cluster` needs it again."""

    table: str
    logs: Logs = field(default_factory=lambda: Logs(()))
    views: tuple[str, ...] = ()
    """As they were given: `NAME=FILE`."""
    catalog: str | None = None
    storage_options: tuple[str, ...] = ()
    """Names alone: the values may be secrets."""


def cluster_command(advice: Advice, given: Given) -> str | None:
    """Return the `zonal cluster` command for the best candidate; None where there is nothing to run.

    A curve is written out. A tree is learned again from the same logs, for its cuts are long and made of the queries'
    values. `…` stands where something is to be filled in: values of storage options, and the place of a copy.
    """
    layout = None if advice.best is None else advice.best.layout
    if layout is None or advice.verdict != "cluster":
        return None
    words = ["zonal", "cluster", given.table]
    if layout.kind == TREE:
        words += ["--layout", TREE]
        words += _log_words(given)
        if layout.target_file_bytes != DEFAULT_FILE_BYTES:
            words += ["--target-file-size", format_size(layout.target_file_bytes)]
    else:
        words += ["--layout", str(layout)]
    if any(warning.code == BLOCKED for warning in advice.warnings):
        words += ["--into", f"{advice.format}:…"]
    words += ["--catalog", given.catalog] if given.catalog is not None else []
    words += [word for name in given.storage_options for word in ("--storage-option", f"{name}=…")]
    return " ".join(map(shell_word, words))


def _log_words(given: Given) -> Iterator[str]:
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
    """Quote a word for a shell; what can't be seen is written as bash and zsh escape it.

    >>> print(shell_word("zorder(ts, id)"), shell_word("day" + chr(10)), shell_word("…"))
    'zorder(ts, id)' $'day\\n' …
    """
    if word.isprintable():
        return word if word == "…" else shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + "'"
