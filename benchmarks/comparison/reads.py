"""What held-out queries read of a rewritten table, in bytes: by files, by row groups and by pages.

It is what zonal's own skipping leaves, on the footers and page indexes of the files themselves, for all systems alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.rewriters.judge import Query
from zonal.predicates.bind import bind
from zonal.skipping.files import FileIndex
from zonal.sql.where import parse_where
from zonal.study.row_groups import Look, read_inside
from zonal.tables.parquet.folder import ParquetTable
from zonal.values.progress import only_notices


@dataclass(frozen=True)
class Reads:
    """Means over the queries."""

    files: int
    bytes: int
    rows: int
    by_files: float
    by_groups: float
    by_pages: float
    """Bytes of whole rows in pages that might match; where files have no page index, those of row groups."""
    kinds: dict[str, float]
    """By kind of query, `by_files`."""


def reads_of(folder: Path, queries: Sequence[Query]) -> Reads:
    """Read the footers of a folder's files, and count what each query can't skip."""
    table = ParquetTable(str(folder))
    snapshot = table.snapshot()
    index, sizes = FileIndex(snapshot), snapshot.files.sizes
    counted = np.zeros((max(1, len(queries)), 3))
    for number, query in enumerate(queries):
        bound = bind(parse_where(query.where, dialect="spark"), snapshot.schema)
        kept = np.flatnonzero(index.prune(bound).kept)
        inside, problems = read_inside(Look(table, snapshot, bound, bloom=False), kept, only_notices)
        if problems:
            raise RuntimeError(f"Footers can't be read: {problems[0]}")
        found = [each for each in inside if each is not None]
        groups = sum(int(each.group_bytes[each.groups].sum()) for each in found)
        counted[number] = sizes[kept].sum(), groups, sum(each.page_bytes for each in found)
    kinds = {
        kind: float(np.mean([counted[at, 0] for at, query in enumerate(queries) if query.kind == kind]))
        for kind in dict.fromkeys(query.kind for query in queries)
    }
    by_files, by_groups, by_pages = counted.mean(axis=0).tolist()
    rows = int(snapshot.files.rows.sum())
    return Reads(len(sizes), int(sizes.sum()), rows, by_files, by_groups, by_pages, kinds)
