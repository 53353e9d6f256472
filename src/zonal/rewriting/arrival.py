"""Append rows to a table: stage them, put them in the layout's order, and commit the new files."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from zonal.layouts.layout import Layout
from zonal.plan.append import Append, Appending, PartitionValues, Transaction
from zonal.plan.file_size import sized
from zonal.plan.rewrite import Scan, Source
from zonal.rewriting.done import Done, RewrittenFiles
from zonal.rewriting.in_place import CommitRequest, Expected, Runner, physical, settle, sweep, write_files
from zonal.rewriting.incoming import Incoming
from zonal.rewriting.proof import check_files
from zonal.snapshot import Snapshot
from zonal.storage import Storage
from zonal.study.sample import plan
from zonal.tables.protocol import Appendable
from zonal.upkeep.append_delays import arriving_delays
from zonal.values.columns import find, leaf
from zonal.values.progress import Progress, Step
from zonal.values.sample import Sample
from zonal.worker.arrival.stage import Staged


@dataclass(frozen=True, eq=False)
class Arrival:
    """Staged rows, and how they become files."""

    partitions: tuple[PartitionValues, ...]
    scan: Scan
    layout: Layout
    """With the size of new files."""
    snapshot: Snapshot

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(source.rows for source in self.scan.sources)

    def delays(self, sample: Sample) -> tuple[int, ...]:
        """Return by how many bits each column waits in the key, since the rows cover little of it in the table."""
        columns = physical(self.layout, self.scan).curve_columns
        arriving = [leaf(sample.data, find(sample.data.schema, name)) for name in columns]
        return arriving_delays(self.snapshot, self.layout.curve_columns, arriving, self.rows)


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

    def append(self, rows: Sequence[Incoming], runner: Runner, report: Progress) -> Done:
        """Append all rows, and return what was committed; a failure leaves the table as it was.

        No rows are no commit.
        """
        writing, request = self.appending.writing, CommitRequest()
        try:
            arrival = self._staged(rows, self.appending, report)
            if arrival is None:
                sweep(writing, ())
                return Done()
            writing = replace(writing, subfolders=self.table.folders(self.snapshot, arrival.partitions))
            labels = [", ".join(map(str, values)) for values in arrival.partitions]
            written, expected = write_files(
                self.snapshot.name, labels, arrival.scan, writing, arrival.layout, runner, report, delays=arrival.delays
            )
            report(Step("committing"))
            append = Append(
                self.snapshot, arrival.partitions, tuple(written), arrival.layout, self.run, self.transaction
            )
            request = CommitRequest(partial(self.table.refers_to, append), partial(check_files, writing, written))
            request.look()
            version = self.table.append(append, sending=request.send)
        except BaseException as error:
            settle(writing, request, error)
            raise
        sweep(writing, {file.path for file in written})
        return expected.without() + Done((version,), RewrittenFiles.of(written))

    def expect(self, rows: Sequence[Incoming], report: Progress) -> tuple[Arrival | None, Done]:
        """Take and check all rows as an append does, and return what it would write; the table's storage isn't touched.

        The rows are staged in a temporary folder of this machine.
        """
        with tempfile.TemporaryDirectory(prefix="zonal-") as folder:
            writing = replace(self.appending.writing, folder=f"{folder}/rows", storage=Storage(folder, {}))
            arrival = self._staged(rows, replace(self.appending, writing=writing), report)
            if arrival is None:
                return None, Done()
            report(Step("sampling"))
            layout = physical(arrival.layout, arrival.scan)
            placement, sizes, _ = plan(arrival.scan, writing, layout, delays=arrival.delays)
            return arrival, Expected.of(placement, sizes).without()

    def _staged(self, rows: Sequence[Incoming], appending: Appending, report: Progress) -> Arrival | None:
        """Stage all rows; None where there are none."""
        report(Step("staging"))
        with appending.writing.storage.advising():
            staged = [file for each in rows for file in each.stage(self.snapshot.name, appending, report)]
        if not staged:
            return None
        partitions, sources = _numbered(staged)
        scan = Scan(sources, appending.reading, appending.columns, appending.writing.storage)
        layout = sized(self.layout, self.snapshot, arriving=sum(file.size for file in staged))
        return Arrival(partitions, scan, layout, self.snapshot)


def _numbered(staged: Sequence[Staged]) -> tuple[tuple[PartitionValues, ...], tuple[Source, ...]]:
    """Number the partitions, and return the staged files as sources of their rows."""
    partitions = {file.key: file.partition for file in staged}
    numbers = {key: number for number, key in enumerate(partitions)}
    sources = tuple(
        Source(number, file.path, file.size, file.rows, numbers[file.key]) for number, file in enumerate(staged)
    )
    return tuple(partitions.values()), sources
