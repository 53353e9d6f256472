"""The page of the comparison, its figures and its numbers, written from the results alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.comparison.data_sets import SETS
from benchmarks.comparison.figure import Dot, costs_and_reads, geometric_mean, query_bars
from benchmarks.comparison.results import Results, Table
from benchmarks.comparison.summary import (
    BY_FILES,
    BY_GROUPS,
    BY_PAGES,
    CPU,
    best_ratios,
    engine_measures,
    losses,
    spread,
    values_of,
)
from benchmarks.comparison.systems import SYSTEMS, title_of
from benchmarks.comparison.trial import OFF
from benchmarks.rewriters.peers import UNTOUCHED

BEGIN, END = "<!-- measured -->", "<!-- end -->"
PAGE, NUMBERS, COSTS, QUERIES = "benchmarks.md", "benchmarks.json", "benchmarks.svg", "benchmarks-queries.svg"
Cells = tuple[str, ...]


def write_docs(results: Results, folder: Path) -> None:
    """Replace the measured part of the page, both figures and the numbers."""
    page = folder / PAGE
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{measured(results)}\n\n{END}{after}")
    titles = {peer.name: peer.title for peer in SYSTEMS}
    (folder / COSTS).write_text(costs_and_reads(_dots(results), titles))
    (folder / QUERIES).write_text(query_bars(_bars(results), titles))
    (folder / NUMBERS).write_text(results.to_json())


def measured(results: Results) -> str:
    """Write everything that comes from results."""
    parts = [
        *_circumstances(results),
        "## The best of zonal against the best peer",
        "Times the best peer's number; below 1 zonal is better. Peers are all systems that aren't zonal's; in reading, "
        "the table as it arrived is one of them.",
        markdown(list(_ratio_rows(results))),
        "## Where zonal loses",
        "Every measure in which the best peer beats a system of zonal's by more than 2 %, and which of them it beats, "
        "with how many times its number theirs is.",
        markdown(list(loss_rows(results)), texts=(0, 1, 2, 5)),
    ]
    for table in results.tables:
        parts += [f"## {_title(table.set)}", _about(table), markdown(list(_rewrite_rows(results, table)))]
        parts += _far_off(results, table)
        if any(each.set == table.set for each in results.queries):
            parts += [_about_queries(table), markdown(list(_query_rows(results, table)))]
    if results.failures:
        parts += [
            "## What failed",
            markdown([("table", "system", "what", "message"), *_failure_rows(results)], texts=range(4)),
        ]
    return "\n\n".join(parts)


def _circumstances(results: Results) -> Iterator[str]:
    machine = results.machine
    loads = [each.load for each in results.rewrites]
    yield (
        f"Measured until {results.date} on {machine['cores']} cores ({machine['processor']}) with "
        f"{machine['memory_gib']} GiB. The load average before a rewrite was {median(loads):.1f} in the median and "
        f"{max(loads):.1f} at most: the more of it others made, the less wall times say. "
        f"Repetitions of rewrites: {max(each.repetition for each in results.rewrites) + 1}."
    )
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in results.versions.items()) + "."
    yield "```sh\n" + "\n".join(results.commands) + "\n```"


def _about(table: Table) -> str:
    columns = ", ".join(f"`{name}`" for name in table.columns)
    return (
        f"{table.rows:,} rows (scale {table.scale:g}) in {table.files} files of {table.bytes / table.files / 1e6:.2f} "
        f"MB, {table.bytes / 1e6:.1f} MB in all, as they arrived. Clustered by {columns}; trees and `auto` learn from "
        f"{table.training} queries. Read: the mean of {table.held_out} held-out queries. In parentheses, the number "
        "of files that the first target size made, where it was corrected."
    )


def _far_off(results: Results, table: Table) -> Iterator[str]:
    """Say which systems made too many or too few files to be compared as they are."""
    runs = [each for each in results.rewrites if each.set == table.set and each.repetition == 0]
    far = [each for each in runs if abs(each.files / table.files - 1) > OFF]
    if far:
        said = ", ".join(f"{title_of(each.system)} ({each.files})" for each in far)
        yield (
            f"More than {OFF:.0%} off {table.files} files even so: {said}. Smaller files skip better, and cost more to "
            "open."
        )


def _about_queries(table: Table) -> str:
    return (
        f"{table.timed} held-out queries in each engine: milliseconds of CPU, milliseconds of wall and MB read, "
        "of each query."
    )


def _rewrite_rows(results: Results, table: Table) -> Iterator[Cells]:
    costs = "files", "CPU s", "± %", "with start", "wall s", "peak MB", "MB written"
    yield "system", *costs, "MB read by files", "by row groups", "by pages"
    for peer in SYSTEMS:
        runs = [each for each in results.rewrites if (each.set, each.system) == (table.set, peer.name)]
        if not runs:
            continue
        values = {measure: found.get(peer.name) for measure, found in values_of(results, table.set).items()}
        reads = (_number(values.get(measure)) for measure in (BY_FILES, BY_GROUPS, BY_PAGES))
        corrected = "" if runs[0].corrected_from is None else f" ({runs[0].corrected_from})"
        yield (
            peer.title,
            f"{median(run.files for run in runs):g}{corrected}",
            f"{median(run.cpu_seconds for run in runs):.2f}",
            f"{spread([run.cpu_seconds for run in runs]) * 50:.0f}",
            f"{median(run.whole_cpu_seconds for run in runs):.1f}",
            f"{median(run.wall_seconds for run in runs):.1f}",
            f"{median(run.memory for run in runs) / 1e6:,.0f}",
            f"{median(run.bytes for run in runs) / 1e6:.1f}",
            *reads,
        )


def _query_rows(results: Results, table: Table) -> Iterator[Cells]:
    engines = list(dict.fromkeys(each.engine for each in results.queries if each.set == table.set))
    yield ("system", *(f"{engine}: {what}" for engine in engines for what in ("CPU", "wall", "MB")))
    values = values_of(results, table.set)
    for peer in SYSTEMS:
        if any((each.set, each.system) == (table.set, peer.name) for each in results.queries):
            measures = [measure for engine in engines for measure in engine_measures(engine)]
            yield (peer.title, *(_number(values.get(measure, {}).get(peer.name)) for measure in measures))


def _ratio_rows(results: Results) -> Iterator[Cells]:
    names = [table.set for table in results.tables]
    yield ("", *names)
    for measure, ratios in best_ratios(results).items():
        yield (measure.name, *(f"{ratios[name]:.2f}" if name in ratios else "" for name in names))


def loss_rows(results: Results) -> Iterator[Cells]:
    """Yield a heading, then one line per measure that is lost."""
    yield "table", "measure", "best peer", "its number", "zonal's that lose", "which, and by how much"
    for loss in losses(results):
        which = ", ".join(
            f"{title_of(system).removeprefix('zonal ')} {times:.2f}" for system, times in loss.losers.items()
        )
        number = f"{_number(loss.best)} {loss.measure.unit}"
        yield loss.set, loss.measure.name, title_of(loss.peer), number, f"{len(loss.losers)} of {loss.out_of}", which


def _failure_rows(results: Results) -> Iterator[Cells]:
    for each in results.failures:
        last = each.message.strip().splitlines()[-1].replace("|", "\\|")
        yield each.set, title_of(each.system), each.what, last[:200]


def _dots(results: Results) -> dict[str, list[Dot]]:
    found = {}
    for table in results.tables:
        values = values_of(results, table.set)
        costs, reads = values.get(CPU, {}), values.get(BY_PAGES, {})
        found[_title(table.set)] = [
            Dot(system, cost, reads[system]) for system, cost in costs.items() if system in reads
        ]
    return {title: dots for title, dots in found.items() if dots}


def _bars(results: Results) -> dict[str, dict[str, float]]:
    """Return by engine and system the CPU of queries against the table as it arrived, the mean over all sets."""
    ratios: dict[str, dict[str, list[float]]] = {}
    for table in results.tables:
        values = values_of(results, table.set)
        for engine in dict.fromkeys(each.engine for each in results.queries):
            found = values.get(engine_measures(engine)[0], {})
            base = found.get(UNTOUCHED.name, 0.0)
            for system, value in found.items():
                if base:
                    ratios.setdefault(engine, {}).setdefault(system, []).append(value / base)
    names = [peer.name for peer in SYSTEMS]
    return {
        engine: {name: geometric_mean(by_system[name]) for name in names if name in by_system}
        for engine, by_system in ratios.items()
    }


def _title(set_: str) -> str:
    return next(each.title for each in SETS if each.name == set_)


def _number(value: float | None) -> str:
    """Write a number with three digits, or nothing."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(rows: Sequence[Cells], *, texts: Sequence[int] = (0,)) -> str:
    """Write rows as a table; the first is its heading, and columns at these places hold texts."""
    heading, *body = rows
    ruled = [heading, tuple("---" if at in texts else "--:" for at in range(len(heading))), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in ruled)
