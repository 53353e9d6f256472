"""Append rows to a table: stage them, put them in the layout's order, and commit the new files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.plan.append import Append, Appending, PartitionValues, Transaction
from zonal.plan.file_size import sized
from zonal.plan.rewrite import Scan, Source
from zonal.rewriting.done import Done, RewrittenFiles
from zonal.rewriting.in_place import CommitRequest, Runner, settle, sweep, write_files
from zonal.rewriting.incoming import Incoming
from zonal.rewriting.proof import check_files
from zonal.snapshot import Snapshot
from zonal.tables.protocol import Appendable
from zonal.values.progress import Progress, Step
from zonal.worker.arrival.stage import Staged


@dataclass(frozen=True, eq=False)
class Appender:
    """Appends rows to one table as a run of its own, in one commit."""

    table: Appendable
    snapshot: Snapshot
    """The version that the rows were checked against."""
    layout: Layout
    run: str
    appending: Appending
    transaction: Transaction | None = None
    ranks: Ranks | None = None
    """The table's own ranks, where they can be had; None: fit them to the rows."""

    def append(self, rows: Sequence[Incoming], runner: Runner, report: Progress) -> Done:
        """Append all rows, and return what was committed; a failure leaves the table as it was.

        No rows are no commit.
        """
        writing, request = self.appending.writing, CommitRequest()
        try:
            report(Step("staging"))
            staged = [file for each in rows for file in each.stage(self.snapshot.name, self.appending, report)]
            if not staged:
                sweep(writing, ())
                return Done()
            partitions, sources = _numbered(staged)
            writing = replace(writing, subfolders=self.table.folders(self.snapshot, partitions))
            scan = Scan(sources, self.appending.reading, self.appending.columns, writing.storage)
            labels = [", ".join(map(str, values)) for values in partitions]
            layout = sized(self.layout, self.snapshot, arriving=sum(file.size for file in staged))
            written, expected = write_files(
                self.snapshot.name, labels, scan, writing, layout, runner, report, ranks=self.ranks
            )
            report(Step("committing"))
            append = Append(self.snapshot, partitions, tuple(written), layout, self.run, self.transaction)
            request = CommitRequest(partial(self.table.refers_to, append), partial(check_files, writing, written))
            request.look()
            version = self.table.append(append, sending=request.send)
        except BaseException as error:
            settle(writing, request, error)
            raise
        sweep(writing, {file.path for file in written})
        return expected.without() + Done((version,), RewrittenFiles.of(written))


def _numbered(staged: Sequence[Staged]) -> tuple[tuple[PartitionValues, ...], tuple[Source, ...]]:
    """Number the partitions, and return the staged files as sources of their rows."""
    partitions = {file.key: file.partition for file in staged}
    numbers = {key: number for number, key in enumerate(partitions)}
    sources = tuple(
        Source(number, file.path, file.size, file.rows, numbers[file.key]) for number, file in enumerate(staged)
    )
    return tuple(partitions.values()), sources
