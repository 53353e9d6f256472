"""Check a table and its queries for known problems of layouts.

Each rule yields a `Caution` with its numbers and what to do. Codes: `few-queries`, `full-scans`,
`opaque-filters`, `nan`, `parameters`, `unknown-columns`, `unparsable`, `low-cardinality`, `unique`, `skew`,
`many-columns`, `dominant-column`, `no-statistics`, `partition-correlated`, `small-table`, `small-files`,
`extrapolated`, `blocked`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from zonal.advising.advice import Candidate, Caution, Filtered
from zonal.advising.decidable import REASON
from zonal.advising.ground import Ground
from zonal.advising.queries import LEAST_QUERIES, opaque_filters
from zonal.errors import option, quoted
from zonal.layouts.layout import ADVISED_COLUMNS
from zonal.predicates.bound import Anything, leaves_of
from zonal.predicates.conjunctions import IS_NULL, RANGE
from zonal.trials.boxes import NULL
from zonal.values.arrays import Int32Array, Int64Array
from zonal.values.columns import find, leaf
from zonal.values.sizes import size_text
from zonal.workload.query import Summary

FEW_VALUES = 8
HEAVY_VALUE = 0.10
MATTERS = 0.05
"""From this share of the weight on, a column counts as filtered."""
DOMINANT, BESIDES = 0.8, 0.2
MANY_FULL_SCANS = 0.5
FEW_FILES = 10
CORRELATED = 0.9
_UNIQUE = 0.99
_LEAST_ROWS = 200


@dataclass(frozen=True, eq=False)
class Evidence:
    """The facts that the rules check."""

    ground: Ground
    summary: Summary
    filtered: tuple[Filtered, ...]
    best: Candidate
    """The best candidate with a layout, or `leave`."""
    hide: bool

    @property
    def layout_columns(self) -> tuple[str, ...]:
        """Return the columns of the best layout."""
        return self.best.layout.columns if self.best.layout is not None else ()

    def heavy(self) -> list[Filtered]:
        """Return the columns of the best layout, and those that queries filter with some weight."""
        return [each for each in self.filtered if each.weight >= MATTERS or each.column in self.layout_columns]


def cautions(case: Evidence) -> tuple[Caution, ...]:
    """Apply all rules, those of the workload first."""
    return tuple(caution for rule in RULES for caution in rule(case))


# --- the workload ----------------------------------------------------------------------------------------------------


def _few_queries(case: Evidence) -> Iterator[Caution]:
    if (count := len(case.ground.asked)) < LEAST_QUERIES:
        yield Caution(
            "few-queries",
            f"The log has too few different queries ({count}): the layouts were chosen and measured on the same ones, "
            f"so others may gain less. Give a longer log, with at least {LEAST_QUERIES} of them.",
        )


def _full_scans(case: Evidence) -> Iterator[Caution]:
    share = full_scan_share(case.ground)
    if share >= MANY_FULL_SCANS:
        yield Caution(
            "full-scans",
            f"{share:.0%} of the queries' weight reads the whole table: it has no filter that bounds of files could "
            "decide, so clustering can't help it. Look at what those queries compute: a summary table may serve them.",
        )


def full_scan_share(ground: Ground) -> float:
    """Return the weight of the queries for which no column excludes anything."""
    boxes = ground.sample.boxes
    limited = ((boxes.null == RANGE) | (boxes.null == IS_NULL)).any(axis=1)
    full = np.zeros(boxes.queries, np.bool_)
    full[boxes.query[~limited]] = True
    return float(ground.sample.weights @ full)


def _opaque(case: Evidence) -> Iterator[Caution]:
    weights = opaque_filters(case.ground.asked)
    weight = max(weights.values(), default=0.0)
    if weight >= MANY_FULL_SCANS / 5:
        reasons = (
            "" if case.hide else " The reasons: " + "; ".join(quoted(text)[1:-1] for text in list(weights)[:3]) + "."
        )
        yield Caution(
            "opaque-filters",
            f"{weight:.0%} of the queries' weight has a filter that bounds can't decide, such as a function of a "
            f"column. Filter by the column itself where you can.{reasons}",
        )


def _may_be_nan(case: Evidence) -> Iterator[Caution]:
    weights: dict[str, float] = {}
    for bound, weight in zip(case.ground.decided, case.ground.asked.weights.tolist(), strict=True):
        for name in {
            node.columns[0] for node in leaves_of(bound) if isinstance(node, Anything) and node.reason == REASON
        }:
            weights[name] = weights.get(name, 0.0) + weight
    for name, weight in weights.items():
        if weight >= MATTERS:
            yield Caution(
                "nan",
                f"{weight:.0%} of the queries' weight asks for {quoted(name)} without an upper limit. {REASON}: all of "
                "them count as read here. Engines that don't care for NaN skip more; an upper limit helps all.",
                name,
            )


def _parameters(case: Evidence) -> Iterator[Caution]:
    if drawn := case.ground.fit.drawn:
        yield Caution(
            "parameters",
            f"{drawn:,} queries have parameters whose values the log doesn't tell: values of the table's rows "
            "stood in for them. Log the values for a closer prediction.",
        )


def _unknown_columns(case: Evidence) -> Iterator[Caution]:
    fit = case.ground.fit
    if case.summary.strange:
        names = ", ".join(map(quoted, case.summary.strangers))
        yield Caution(
            "unknown-columns",
            f"{case.summary.strange:,} statements filter the table by {names} alone, which it doesn't have: they count "
            "as reading all of it. Is it this table that they mean? Give a newer log, or the names that it has there "
            f"({option('names')}).",
        )
    if fit.unbound:
        why = f" Such as: {fit.unknown[0]}" if fit.unknown and not case.hide else ""
        yield Caution(
            "unknown-columns",
            f"{fit.unbound:,} queries don't fit the table's columns and were left out.{why} Give the names by "
            f"which the log knows this table ({option('names')}), or a newer log.",
        )


def _unparsable(case: Evidence) -> Iterator[Caution]:
    summary = case.summary
    if summary.unparsable > 0.1 * max(summary.statements, 1):
        yield Caution(
            "unparsable",
            f"{summary.unparsable:,} of {summary.statements:,} statements couldn't be read and count for nothing. "
            f"Say which SQL dialect they are in ({option('dialect')}).",
        )


# --- the columns -----------------------------------------------------------------------------------------------------


def _low_cardinality(case: Evidence) -> Iterator[Caution]:
    for each in case.heavy():
        if each.distinct is not None and each.distinct_is_all and each.distinct < FEW_VALUES and not each.partitions:
            yield Caution(
                "low-cardinality",
                f"{quoted(each.column)} has only {each.distinct} different values: a curve can cut it into no more "
                "parts than that. Leave it out of a curve, partition by it, or let a tree decide where it pays.",
                each.column,
            )


def _unique(case: Evidence) -> Iterator[Caution]:
    for each in case.heavy():
        codes = _codes(case, each.column)
        known = 0 if codes is None else int((codes != NULL).sum())
        by_equality = each.equality >= each.weight / 2  # ranges of such a column skip well
        if by_equality and known >= _LEAST_ROWS and (each.distinct or 0) >= _UNIQUE * known:
            yield Caution(
                "unique",
                f"{quoted(each.column)} is different in nearly every row ({each.distinct:,} values in {known:,} rows "
                "of the sample), and queries ask for single values: in a curve it takes what other columns need. Give "
                "it a Bloom filter, or order by it alone if nothing else matters.",
                each.column,
            )


def _skew(case: Evidence) -> Iterator[Caution]:
    weights = case.ground.sample.row_weights
    for each in case.heavy():
        codes = _codes(case, each.column)
        if codes is None or each.partitions or (each.distinct or 0) < FEW_VALUES or len(codes) < _LEAST_ROWS:
            continue
        rows = np.bincount(codes + 1, weights)
        rows[0] = 0.0
        heaviest = int(rows.argmax())
        share = float(rows[heaviest] / max(float(weights.sum()), 1e-300))
        if share > HEAVY_VALUE:
            yield Caution(
                "skew",
                f"{_value(case, each.column, heaviest - 1)} of {quoted(each.column)} has {share:.0%} of the rows: "
                "queries for it read at least that much, unless other columns part its rows. Partition by the column, "
                "or take a layout with a second column (a tree, a curve), which splits it.",
                each.column,
            )


def _value(case: Evidence, column: str, code: int) -> str:
    if case.hide:
        return "One value"
    data = case.ground.sample.rows.data
    codes = _codes(case, column)
    at = int(np.flatnonzero(codes == code)[0])
    return f"The value {quoted(str(leaf(data, find(data.schema, column))[at].as_py()), limit=40)}"


def _many_columns(case: Evidence) -> Iterator[Caution]:
    heavy = [each.column for each in case.filtered if each.weight >= MATTERS and not each.partitions]
    if len(heavy) > ADVISED_COLUMNS:
        named = ", ".join(map(quoted, heavy[:8]))
        yield Caution(
            "many-columns",
            f"Queries filter {len(heavy)} columns ({named}): a curve over more than {ADVISED_COLUMNS} skips little on "
            "each. Take the tree, which cuts each where its queries are, or the columns of the most weight.",
        )


def _dominant(case: Evidence) -> Iterator[Caution]:
    free = [each for each in case.filtered if not each.partitions]
    others = max((each.weight for each in free[1:]), default=0.0)
    if free and free[0].weight >= DOMINANT and others < BESIDES:
        first = free[0].column
        yield Caution(
            "dominant-column",
            f"{free[0].weight:.0%} of the queries' weight filters {quoted(first)}, and no other column comes near: a "
            f"plain sort, linear({first}), does as well as any curve and is easier to keep up.",
            first,
        )


def _no_statistics(case: Evidence) -> Iterator[Caution]:
    for each in case.heavy():
        if not each.has_statistics and not each.partitions:
            yield Caution(
                "no-statistics",
                f"The files have no bounds of {quoted(each.column)}, which {each.weight:.0%} of the queries' weight "
                f"filters: no layout helps before they have. {case.ground.snapshot.traits.bounds_advice(each.column)}",
                each.column,
            )


def _correlated(case: Evidence) -> Iterator[Caution]:
    partition = case.ground.sample.rows.partition
    if not case.ground.snapshot.partitioning or len(np.unique(partition)) < 2:
        return
    for each in case.heavy():
        codes = _codes(case, each.column)
        if codes is None or each.partitions:
            continue
        share = _explained(codes, partition)
        if share >= CORRELATED:
            by = ", ".join(case.ground.snapshot.partitioning)
            yield Caution(
                "partition-correlated",
                f"{quoted(each.column)} follows the partitions by {by}, which explain {share:.0%} of its variance: "
                "inside of one it hardly differs, so that ordering by it brings little. Leave it out of the layout.",
                each.column,
            )


def _explained(codes: Int32Array, partition: Int64Array) -> float:
    """Return the share of the codes' variance that lies between partitions."""
    known = codes != NULL
    values, part = codes[known].astype(np.float64), np.unique(partition[known], return_inverse=True)[1]
    total = float(values.var()) * len(values)
    if len(values) < _LEAST_ROWS or total <= 0:
        return 0.0
    rows = np.bincount(part)
    means = np.bincount(part, values) / rows
    return float(rows @ (means - values.mean()) ** 2) / total


def _codes(case: Evidence, column: str) -> Int32Array | None:
    coded = case.ground.sample.coded
    return coded.codes[:, coded.columns.index(column)] if column in coded.columns else None


# --- the table -------------------------------------------------------------------------------------------------------


def _small_table(case: Evidence) -> Iterator[Caution]:
    size, target = case.ground.bytes, case.ground.target_file_bytes
    files = max(1, round(size / target))
    if files < FEW_FILES:
        yield Caution(
            "small-table",
            f"The table has {size_text(size)}: {files} file{'s' if files > 1 else ''} of {size_text(target)}, "
            "which can't skip much. "
            f"Leave it, or choose smaller files ({option('target_file_size')}) if its queries have to be fast.",
        )


def _small_files(case: Evidence) -> Iterator[Caution]:
    sizes = case.ground.snapshot.files.sizes
    needed = max(1, round(case.ground.bytes / case.ground.target_file_bytes))
    if len(sizes) > 10 * needed and len(sizes) > FEW_FILES:
        yield Caution(
            "small-files",
            f"{len(sizes):,} files have {size_text(int(np.median(sizes)))} in the middle, where {needed:,} would do: "
            "planning and opening them takes longer than reading. Compact them, or cluster, which does it on the way.",
        )


def _extrapolated(case: Evidence) -> Iterator[Caution]:
    if case.best.extrapolated:
        yield Caution(
            "extrapolated",
            f"The sample of {len(case.ground.sample.coded):,} rows is too small for {case.best.files:,} files: shares "
            "were predicted for fewer files, or some partitions, and carried over. Give more sample rows "
            f"({option('sample_rows')}) for a closer prediction.",
        )


def _blocked(case: Evidence) -> Iterator[Caution]:
    for reason in case.ground.snapshot.blockers[:3]:
        copy = f"A copy ({option('into')}) can be clustered."
        yield Caution("blocked", f"zonal can't rewrite this table in place: {reason} {copy}")


Rule = Callable[[Evidence], Iterator[Caution]]
RULES: tuple[Rule, ...] = (
    _few_queries,
    _full_scans,
    _opaque,
    _may_be_nan,
    _parameters,
    _unknown_columns,
    _unparsable,
    _low_cardinality,
    _unique,
    _skew,
    _many_columns,
    _dominant,
    _no_statistics,
    _correlated,
    _small_table,
    _small_files,
    _extrapolated,
    _blocked,
)
