"""Numbers of a comparison side by side: medians, spreads, ratios, and every measure in which a peer beats zonal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.comparison.results import QueryTime, Results
from benchmarks.comparison.systems import SYSTEMS, is_zonal
from benchmarks.rewriters.peers import UNTOUCHED

TOLERANCE = 0.02
"""A difference below this share is none."""


@dataclass(frozen=True)
class Measure:
    """A number by which systems are compared, less being better."""

    name: str
    unit: str
    of_rewrite: bool = False
    """Whether it is a cost of rewriting, which a table that is left alone doesn't have."""


CPU = Measure("rewrite, CPU", "s", of_rewrite=True)
WALL = Measure("rewrite, wall", "s", of_rewrite=True)
MEMORY = Measure("rewrite, peak memory", "MB", of_rewrite=True)
WRITTEN = Measure("bytes written", "MB", of_rewrite=True)
BY_FILES = Measure("read a query, by files", "MB")
BY_GROUPS = Measure("read a query, by row groups", "MB")
BY_PAGES = Measure("read a query, by pages", "MB")


def engine_measures(engine: str) -> tuple[Measure, Measure, Measure]:
    """Return what is measured of an engine's queries."""
    return (
        Measure(f"{engine}, CPU a query", "ms"),
        Measure(f"{engine}, wall a query", "ms"),
        Measure(f"{engine}, read a query", "MB"),
    )


@dataclass(frozen=True)
class Loss:
    """A measure on a table in which the best peer beats some of zonal's systems."""

    set: str
    measure: Measure
    peer: str
    best: float
    losers: Mapping[str, float]
    """Systems of zonal's by how many times the peer's number theirs is, the best one first."""
    out_of: int
    """Systems of zonal's that were measured."""


def spread(values: Sequence[float]) -> float:
    """Return the distance between the extremes as a share of the median; 0 of a single value."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def values_of(results: Results, set_: str) -> dict[Measure, dict[str, float]]:
    """Return every measure of a set by system, in the order of systems; of repetitions the median."""
    found: dict[Measure, dict[str, float]] = {}
    for system in (peer.name for peer in SYSTEMS):
        for measure, value in _values(results, set_, system):
            found.setdefault(measure, {})[system] = value
    return found


def _values(results: Results, set_: str, system: str) -> Iterator[tuple[Measure, float]]:
    runs = [each for each in results.rewrites if (each.set, each.system) == (set_, system)]
    if runs:
        yield CPU, median(run.cpu_seconds for run in runs)
        yield WALL, median(run.wall_seconds for run in runs)
        yield MEMORY, median(run.memory for run in runs) / 1e6
        yield WRITTEN, median(run.bytes for run in runs) / 1e6
    for reads in (each for each in results.reads if each.key == (set_, system)):
        yield BY_FILES, reads.by_files / 1e6
        yield BY_GROUPS, reads.by_groups / 1e6
        yield BY_PAGES, reads.by_pages / 1e6
    for queries in (each for each in results.queries if each.key[:2] == (set_, system)):
        yield from zip(engine_measures(queries.engine), _a_query(queries), strict=True)


def _a_query(queries: QueryTime) -> tuple[float, float, float]:
    """Return milliseconds of CPU and wall and megabytes of a query: of passes the median, of queries the mean."""
    cpu = median(each.cpu_seconds for each in queries.passes) / queries.queries * 1e3
    wall = median(each.wall_seconds for each in queries.passes) / queries.queries * 1e3
    return cpu, wall, median(each.bytes for each in queries.passes) / queries.queries / 1e6


def best_of(values: Mapping[str, float], measure: Measure, *, zonal: bool) -> tuple[str, float] | None:
    """Return the best of zonal's systems or of the others; one that doesn't rewrite is no peer in rewriting."""
    some = {
        system: value
        for system, value in values.items()
        if is_zonal(system) == zonal and not (measure.of_rewrite and system == UNTOUCHED.name)
    }
    return min(some.items(), key=lambda item: item[1]) if some else None


def losses(results: Results) -> Iterator[Loss]:
    """Yield every measure of every set in which the best peer beats some of zonal's systems."""
    for table in results.tables:
        for measure, values in values_of(results, table.set).items():
            best = best_of(values, measure, zonal=False)
            own = {system: value for system, value in values.items() if is_zonal(system)}
            if best is None or not own:
                continue
            peer, least = best
            worse = {system: value for system, value in own.items() if value > least * (1 + TOLERANCE)}
            if worse and least > 0:
                ranked = sorted(worse.items(), key=lambda item: item[1])
                times = {system: value / least for system, value in ranked}
                yield Loss(table.set, measure, peer, least, times, len(own))


def best_ratios(results: Results) -> dict[Measure, dict[str, float]]:
    """Return by measure and set how many times the best peer's number the best of zonal's is."""
    found: dict[Measure, dict[str, float]] = {}
    for table in results.tables:
        for measure, values in values_of(results, table.set).items():
            own, other = (best_of(values, measure, zonal=zonal) for zonal in (True, False))
            if own and other and other[1] > 0:
                found.setdefault(measure, {})[table.set] = own[1] / other[1]
    return found
