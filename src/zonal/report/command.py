"""The command that does what an advice says, ready for a shell."""

import shlex
from dataclasses import dataclass

from zonal.advising.advice import Advice
from zonal.layout import DEFAULT_FILE_BYTES, TREE
from zonal.sizes import format_size

BLOCKED = "blocked"
"""The code of the warning that a table can't be rewritten in place."""


@dataclass(frozen=True)
class Given:
    """What `advise` was given, as far as `cluster` needs it again."""

    table: str
    queries: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    dialect: str | None = None
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
        words += [word for log in given.queries or ("…",) for word in ("--queries", log)]
        words += [word for name in given.names for word in ("--name", name)]
        words += ["--dialect", given.dialect] if given.dialect is not None else []
        if layout.target_file_bytes != DEFAULT_FILE_BYTES:
            words += ["--target-file-size", format_size(layout.target_file_bytes)]
    else:
        words += ["--layout", str(layout)]
    if any(warning.code == BLOCKED for warning in advice.warnings):
        words += ["--into", f"{advice.format}:…"]
    words += ["--catalog", given.catalog] if given.catalog is not None else []
    words += [word for name in given.storage_options for word in ("--storage-option", f"{name}=…")]
    return " ".join(map(shell_word, words))


def shell_word(word: str) -> str:
    """Quote a word for a shell; what can't be seen is written as bash and zsh escape it.

    >>> print(shell_word("zorder(ts, id)"), shell_word("day" + chr(10)), shell_word("…"))
    'zorder(ts, id)' $'day\\n' …
    """
    if word.isprintable():
        return word if word == "…" else shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped) + "'"
