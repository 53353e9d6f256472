"""Print an advice on a terminal: the verdict first, then what it rests on."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.advising.advice import Advice, Bloom
from zonal.report.command import CommandOptions, cluster_command
from zonal.report.terminal.text import print_fact, print_line, print_list, print_whole, printable
from zonal.report.wording import (
    Fact,
    asked_text,
    basis,
    change_facts,
    clipped,
    column_cells,
    cost_text,
    interval_text,
    payback_text,
    plural,
    regressions_heading,
    share_text,
    shown_candidates,
    table_facts,
    unread,
    what_text,
    workload_facts,
)
from zonal.report.wrap import fit

_MOST_COLUMNS = 10


def print_advice(console: Console, advice: Advice, given: CommandOptions | None = None) -> None:
    """Print an advice; `given` names what the command to run is made of."""
    print_line(console, advice.reason, style="bold")
    command = cluster_command(advice, given or CommandOptions(advice.table.name))
    if command is not None:
        console.print()
        print_whole(console, f"  {command}", style="green")
    console.print()
    _print_facts(console, [*table_facts(advice), *change_facts(advice)])
    if advice.candidates:
        console.print(fit(console, _candidates(advice)))
        _print_notes(console, advice)
    _print_regressions(console, advice)
    print_list(console, "Bloom filters would help, too:", map(_bloom_text, advice.blooms))
    print_list(console, "Warnings:", [clipped(warning.text, 600) for warning in advice.warnings])
    _print_workload(console, advice)
    print_list(console, "What this rests on:", basis(advice))


def _candidates(advice: Advice) -> Table:
    table = Table()
    table.add_column("what", overflow="fold")
    for heading in ("reads", "9 of 10 times", "files", "cost", "paid back"):
        table.add_column(heading, justify="right")
    for each in shown_candidates(advice):
        is_best = each == advice.best
        table.add_row(
            Text(("→ " if is_best else "") + printable(what_text(each, 120))),
            share_text(each.reads.bytes) + ("*" if each.extrapolated else ""),
            interval_text(each.reads).replace(" to ", "\N{EN DASH}"),  # one word: a column may be narrow
            f"{each.files:,}",
            cost_text(each.cost),
            payback_text(each.cost),
            style="bold" if is_best else "",
        )
    return table


def _print_notes(console: Console, advice: Advice) -> None:
    shown = shown_candidates(advice)
    if any(each.extrapolated for each in shown):
        print_line(console, "* carried over from a prediction for fewer files")
    for each in shown:
        if each.note:
            print_line(console, f"· {what_text(each)}: {clipped(each.note, 600)}")
    if len(advice.candidates) > len(shown):
        console.print(f"· and {plural(len(advice.candidates) - len(shown), 'other candidate')}")


def _print_regressions(console: Console, advice: Advice) -> None:
    best = advice.best
    if best is None or best.layout is None:
        return
    print_line(console, regressions_heading(best), style="bold")
    for query in best.worse:
        change = f"{share_text(query.before)} → {share_text(query.after)}"
        print_line(console, f"· {change}: {clipped(query.query)} ({asked_text(query)})")


def _bloom_text(bloom: Bloom) -> str:
    change = f"{share_text(bloom.before)} → {share_text(bloom.after)}"
    return f"{clipped(bloom.column)}, {change} for {bloom.weight:.0%} of the weight: {clipped(bloom.text, 600)}"


def _print_workload(console: Console, advice: Advice) -> None:
    print_line(console, "The queries:", style="bold")
    _print_facts(console, workload_facts(advice))
    for example in unread(advice):
        print_line(console, f"· can't be read: {clipped(example)}")
    if advice.workload.filtered:
        table = Table()
        table.add_column("filtered column", overflow="fold")
        for heading in ("by queries' weight", "by =", "distinct", "skipped by"):
            table.add_column(heading, justify="right")
        for column in advice.workload.filtered[:_MOST_COLUMNS]:
            table.add_row(Text(printable(clipped(column.column, 120))), *column_cells(column))
        console.print(table)
        if len(advice.workload.filtered) > _MOST_COLUMNS:
            console.print(f"· and {plural(len(advice.workload.filtered) - _MOST_COLUMNS, 'other column')}")


def _print_facts(console: Console, facts: Iterable[Fact]) -> None:
    for label, value in facts:
        print_fact(console, label, value)
