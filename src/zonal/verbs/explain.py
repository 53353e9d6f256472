"""`explain`: which partitions, files, row groups and pages a query reads, and what skipped the rest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from zonal.arguments import check_arguments
from zonal.display import Display, Shown
from zonal.errors import PredicateError, option
from zonal.picture.picture import Picture
from zonal.predicates.bound import Anything, Bound, leaves_of
from zonal.predicates.expressions import Predicate
from zonal.predicates.wording import describe
from zonal.skipping.files import FileIndex, Pruned
from zonal.skipping.index import columns_of
from zonal.snapshot import UNKNOWN, Files, Snapshot, table_names
from zonal.sql.dialect import Dialect
from zonal.study.drawing import drawn, is_wanted, without_values
from zonal.study.row_groups import Look, ReadInside, read_inside
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot, table_of
from zonal.values.arrays import Int64Array
from zonal.values.progress import Progress, Step, only_notices

FOOTERS = 1000
"""Footers that are read by default: beyond this many files, `explain` stops at the level of files."""
HIDDEN_REASON = "a part whose reason isn't shown, for it may quote values"


@dataclass(frozen=True)
class Level:
    """What skipping leaves at one level: units and bytes."""

    name: str
    kept: int
    total: int
    kept_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class ReadFile:
    """A file that the query reads."""

    path: str
    size: int
    rows: int | None
    partition: str
    row_groups: int | None = None
    """Row groups that might match; None where the footer was not read."""
    total_row_groups: int | None = None


@dataclass(frozen=True)
class Explanation(Shown):
    """What a query reads of a table."""

    table: str
    format: str
    version: int | None
    predicate: str
    levels: tuple[Level, ...]
    skipped_by: Mapping[str, int]
    """Files that each column's bounds, or partition values, skipped."""
    unknown: tuple[str, ...]
    """Parts of the predicate that no statistics help with, and why."""
    files: tuple[ReadFile, ...]
    notes: tuple[str, ...]
    picture: Picture | None = field(default=None, repr=False, compare=False)
    """The files as rectangles and the query as a box, where it was asked for."""

    @property
    def share_of_bytes(self) -> float:
        """Return the share of the table's bytes that the query reads, at the finest level that was read."""
        return self.levels[-1].kept_bytes / max(self.levels[0].total_bytes, 1)


def explain(
    table: Table | str,
    *,
    where: str | None = None,
    sql: str | None = None,
    read_as: str | None = None,
    dialect: Dialect | str | None = None,
    footers: bool | None = None,
    bloom: bool = False,
    display: Display | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Tell which partitions, files, row groups and pages a condition or statement reads, and what skipped the rest.

    A statement is read as `audit` and `advise` read it.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        where: a condition, as after WHERE; give either this or `sql`.
        sql: a whole statement.
        read_as: the table's name or alias in a statement that reads several; by default its own.
        dialect: of the SQL, such as `spark` or `trino`, or `Dialect`, with the session's time zone and time.
        footers: read the footers of the kept files for row groups and pages; by default, of up to a thousand files.
        bloom: also look values up in their Bloom filters.
        display: what the result shows, as `Display`.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> reads = zonal.explain("events", where="day = 2 AND id > 3")
        >>> [(level.name, level.kept, level.total) for level in reads.levels][0], reads.skipped_by
        (('files', 1, 4), {'day': 3})
    """
    check_arguments(explain, locals())
    if (where is None) == (sql is None):
        raise PredicateError(f"Give either a condition ({option('where')}) or a query ({option('sql')}).")
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    report, how, shown = progress or only_notices, Dialect.of(dialect), display or Display()
    report(Step("reading the table's metadata"))
    if sql is not None:
        query = how.statement(sql)
        snapshot = read_snapshot(source, report)
        predicate = query.predicate(table=read_as, own=table_names(snapshot), columns=snapshot.schema.names)
    else:
        predicate = how.condition(str(where))
        snapshot = read_snapshot(source, report)
    bound = how.bound(predicate, snapshot.schema)
    explanation = _explained(source, snapshot, bound, where or str(sql), footers=footers, bloom=bloom, report=report)
    if is_wanted(shown.picture, snapshot):
        explanation = replace(explanation, picture=_drawn(snapshot, bound, explanation.predicate))
    return _without_values(explanation, predicate) if shown.hide_literals else explanation


def _drawn(snapshot: Snapshot, bound: Bound, text: str) -> Picture | None:
    """Draw the files over the columns of the query, then those of the layout."""
    columns = [*columns_of(bound), *(snapshot.layout.columns if snapshot.layout else ())]
    return drawn([("now", snapshot)], columns, [(text, bound, 1.0)])


def _without_values(explanation: Explanation, predicate: Predicate) -> Explanation:
    """Show no value that the query compares with; reasons may quote its SQL."""
    text, picture = describe(predicate, hide=True), explanation.picture
    if picture is not None:
        questions = tuple(replace(question, text=text) for question in picture.questions)
        picture = without_values(replace(picture, questions=questions))
    unknown = (HIDDEN_REASON,) if explanation.unknown else ()
    return replace(explanation, predicate=text, unknown=unknown, picture=picture)


def prune(
    table: Table | str,
    *,
    where: str,
    dialect: Dialect | str | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the files that might hold a row for which the condition is true.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        where: a condition, as after WHERE.
        dialect: of the SQL, such as `spark` or `trino`, or `Dialect`, with the session's time zone and time.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.

    Example:
        >>> [path.rpartition("/")[2] for path in zonal.prune("events", where="day BETWEEN 1 AND 2")]
        ['1.parquet', '2.parquet']
    """
    check_arguments(prune, locals())
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    snapshot = source.snapshot()
    how = Dialect.of(dialect)
    bound = how.bound(how.condition(where), snapshot.schema)
    kept = FileIndex(snapshot).prune(bound).kept
    paths: list[str] = snapshot.files.paths.filter(pa.array(kept)).to_pylist()
    return paths


def _explained(
    table: Table, snapshot: Snapshot, bound: Bound, text: str, *, footers: bool | None, bloom: bool, report: Progress
) -> Explanation:
    pruned, notes = FileIndex(snapshot).prune(bound), list(snapshot.problems)
    kept = np.flatnonzero(pruned.kept)
    inside: list[ReadInside | None] = [None] * len(kept)
    if footers is None and len(kept) > FOOTERS:
        notes.append(f"{len(kept):,} files are kept: their footers were not read.")
    elif footers is not False:
        inside, unread = read_inside(Look(table, snapshot, bound, bloom), kept, report)
        notes += unread
    skipped = {**{f"{name} (partition)": mask for name, mask in pruned.by_partition.items()}, **pruned.by_bounds}
    return Explanation(
        table=snapshot.name,
        format=snapshot.format,
        version=snapshot.version,
        predicate=text,
        levels=tuple(_levels(snapshot, pruned, kept, inside)),
        skipped_by={name: int(mask.sum()) for name, mask in skipped.items()},
        unknown=tuple(dict.fromkeys(leaf.reason for leaf in leaves_of(bound) if isinstance(leaf, Anything))),
        files=tuple(_file(snapshot.files, int(row), file) for row, file in zip(kept, inside, strict=True)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _levels(
    snapshot: Snapshot, pruned: Pruned, kept: Int64Array, inside: Sequence[ReadInside | None]
) -> Iterator[Level]:
    files = snapshot.files
    total = int(files.sizes.sum())
    if snapshot.partitioning:
        here = pruned.in_partitions
        some, every = (len(np.unique(part)) for part in (files.partition[here], files.partition))
        yield Level("partitions", some, every, int(files.sizes[here].sum()), total)
    yield Level("files", len(kept), len(files), int(files.sizes[kept].sum()), total)
    unread = int(sum(files.sizes[row] for row, file in zip(kept, inside, strict=True) if file is None))
    yield from _levels_inside([file for file in inside if file is not None], unread)


def _levels_inside(known: Sequence[ReadInside], unread: int) -> Iterator[Level]:
    """Count the row groups and pages of files whose footers were read; the bytes of others count as read."""
    if not known:
        return
    groups = sum(int(file.groups.sum()) for file in known)
    group_bytes = sum(int(file.group_bytes[file.groups].sum()) for file in known)
    whole = sum(int(file.group_bytes.sum()) for file in known) + unread
    yield Level("row groups", groups, sum(len(file.groups) for file in known), group_bytes + unread, whole)
    if any(file.has_pages for file in known):
        read, every = (sum(file.pages[side] for file in known) for side in (0, 1))
        yield Level("pages", read, every, sum(file.page_bytes for file in known) + unread, group_bytes + unread)


def _file(files: Files, row: int, inside: ReadInside | None) -> ReadFile:
    rows = int(files.rows[row])
    return ReadFile(
        path=files.paths[row].as_py(),
        size=int(files.sizes[row]),
        rows=None if rows == UNKNOWN else rows,
        partition=files.partitions[files.partition[row]] if files.partitions else "",
        row_groups=None if inside is None else int(inside.groups.sum()),
        total_row_groups=None if inside is None else len(inside.groups),
    )
