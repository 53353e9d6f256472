"""Questions of the demonstration, and what they read by a table's metadata."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.demo.query_log import QueryKind
from zonal.errors import ZonalError, quoted
from zonal.predicates.bind import bind
from zonal.predicates.bound import Bound
from zonal.predicates.expressions import And, Column, Compare, Predicate
from zonal.skipping.files import FileIndex
from zonal.snapshot import Snapshot
from zonal.sql.where import parse_where
from zonal.values.columns import find, leaf
from zonal.values.selection import take_rows
from zonal.workload.query import Query, Summary, Workload

ASKED = 100
"""Conditions per question, each with other values."""
_SAMPLE_ROWS = 20_000


@dataclass(frozen=True)
class Question:
    """A question as it is printed, and the conditions that it stands for."""

    text: str
    conditions: tuple[Predicate, ...]


@dataclass(frozen=True)
class QuestionReads:
    """What a question's conditions read on average: files, and the share of the table's bytes."""

    files: float
    share: float


def compare(
    before: Snapshot, after: Snapshot, questions: Sequence[Question]
) -> tuple[list[QuestionReads], list[QuestionReads]]:
    """Return what each question reads before and after: the files that might hold a matching row, as in `explain`."""
    bound = [[bind(condition, after.schema) for condition in question.conditions] for question in questions]
    then, now = ([_reads(FileIndex(snapshot), each) for each in bound] for snapshot in (before, after))
    return then, now


def _reads(index: FileIndex, conditions: Sequence[Bound]) -> QuestionReads:
    sizes = index.snapshot.files.sizes
    kept = [index.prune(condition).kept for condition in conditions]
    share = np.mean([sizes[mask].sum() for mask in kept]) / sizes.sum()
    return QuestionReads(float(np.mean([mask.sum() for mask in kept])), float(share))


def logged(kinds: Sequence[QueryKind]) -> list[Question]:
    """Make one question per kind of query in a log."""
    return [Question(kind.text, tuple(map(parse_where, kind.conditions))) for kind in kinds]


def workload_of(questions: Sequence[Question]) -> Workload:
    """Return all conditions as queries of equal weights: what `audit` takes where there is no log."""
    queries = [Query(each, 1.0, 1, source=question.text) for question in questions for each in question.conditions]
    return Workload(tuple(queries), Summary(len(queries), len(queries), len(queries), 0, 0, 0))


def lookups(table: pa.Table, columns: Sequence[str]) -> list[Question]:
    """Make questions for values that exist, and for ranges that hold a known share of the rows."""
    rng = np.random.default_rng(1)
    sample = take_rows(table, np.sort(rng.integers(0, table.num_rows, min(table.num_rows, _SAMPLE_ROWS))))
    known = {name: _sorted(sample, name) for name in columns}

    def ranges(names: Sequence[str], share: float) -> tuple[Predicate, ...]:
        parts = (tuple(_range(known[name], name, share, rng) for name in names) for _ in range(ASKED))
        return tuple(And(tuple(one for part in both for one in part)) for both in parts)

    questions = [Question(f"{name} = ?", ranges([name], 0.0)) for name in columns]
    questions += [Question(f"1 % of {name}", ranges([name], 0.01)) for name in columns]
    if len(columns) > 1:
        questions.append(Question("5 % of each", ranges(columns, 0.05)))
    return questions


def _sorted(sample: pa.Table, name: str) -> pa.ChunkedArray:
    values = leaf(sample, find(sample.schema, name)).drop_null()
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not len(values):
        raise ZonalError(f"Column {quoted(name)} has only nulls: there is nothing to look up.")
    return values.take(pc.sort_indices(values))


def _range(known: pa.ChunkedArray, name: str, share: float, rng: np.random.Generator) -> Iterator[Predicate]:
    width = int(share * len(known))
    low = int(rng.integers(0, max(len(known) - width, 1)))
    column = Column(name, quoted=True)
    yield Compare(column, ">=", known[low].as_py())
    yield Compare(column, "<=", known[low + width].as_py())
