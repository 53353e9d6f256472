"""Classes of commands: errors name flags, Ctrl-C says what stays, and help shows no type after flags."""

import shlex
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from zonal.cli.options import NOTHING_CHANGED, plain_notices, stoppable
from zonal.cli.spared_pandas import spare_pandas
from zonal.errors import naming_flags

_EXTRA = "unexpected extra argument"


class Verbs(TyperGroup):
    """The program with its commands."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer brings a click of its own, or takes another
        """Return the options; flags without a type."""
        return _bare_flags(super().get_params(ctx))


class Verb(TyperCommand):
    """A command; its `stays` says what an interrupted run leaves behind, unless the interrupt itself tells."""

    stays = NOTHING_CHANGED

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """Return the options; flags without a type."""
        return _bare_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the command line; where words are left over, say how to quote."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            message = getattr(error, "message", "")
            if _EXTRA in message and (advice := quoting(given, self._valued(ctx))):
                error.message = f"{message.rstrip('.')}. {advice}"  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command."""
        with naming_flags(), plain_notices(), stoppable(self.stays):
            spare_pandas()
            return super().invoke(ctx)

    def _valued(self, ctx: Any) -> frozenset[str]:  # noqa: ANN401
        """Return the options that take a value."""
        return frozenset(name for each in self.get_params(ctx) if not _is_flag(each) for name in each.opts)


class AuditVerb(Verb):
    """A command that records its results in a database, but never changes a table."""

    stays = "No table was changed."


def quoting(args: Sequence[str], valued: frozenset[str]) -> str:
    """Say how to quote the value of an option that a shell has cut at its spaces; empty where there is none.

    >>> quoting(["events", "--layout", "zorder(ts,", "id)"], frozenset(["--layout"]))
    "Text with spaces or brackets needs quotes in a shell: --layout 'zorder(ts, id)'"
    >>> quoting(["--where", "id", "=", "5", "events"], frozenset(["--where"]))
    "Text with spaces or brackets needs quotes in a shell: --where 'id = 5'"
    """
    runs: list[tuple[str, list[str]]] = [("", [])]
    for word in args:
        if word.startswith("--"):
            name, is_joined, value = word.partition("=")
            runs.append((name, [value] if is_joined else []))
        else:
            runs[-1][1].append(word)
    has_table = any(words for name, words in runs if name not in valued)  # first, or after a flag
    for name, words in runs[1:]:
        cut = words if has_table else words[:-1]
        if name in valued and len(cut) > 1:
            return f"Text with spaces or brackets needs quotes in a shell: {name} {shlex.quote(' '.join(cut))}"
    return ""


def _is_flag(parameter: Any) -> bool:  # noqa: ANN401
    return bool(getattr(parameter, "is_flag", False))


def _bare_flags(parameters: list[Any]) -> list[Any]:
    """Remove the type of flags, which take no value: typer would print it after them."""
    for each in parameters:
        if _is_flag(each) and each.metavar is None:
            each.metavar = ""
    return parameters
