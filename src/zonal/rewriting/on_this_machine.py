"""Run the two steps of a rewrite in threads of this process, without Spark: for tables that fit one machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

import pyarrow as pa

from zonal.plan.placement import Placement
from zonal.plan.rewrite import ReadTally, Scan, Writing, Written
from zonal.values.progress import Progress, Step
from zonal.worker.exchange import results
from zonal.worker.exchange.spill import MEMORY, Spill
from zonal.worker.machine import memory_bytes, processors
from zonal.worker.splits import Split, split_text
from zonal.worker.tasks import read_step, write_step

Item = TypeVar("Item")
Made = TypeVar("Made")

THREAD_BYTES = 512 * 1024**2
"""Memory that a thread may need: the rows that it places or sorts, twice, and a task's payloads."""


@dataclass(frozen=True)
class ThisMachine:
    """Runs rewrites in this process; it is a `Runner`."""

    threads: int = field(default_factory=lambda: threads_for(processors(), memory_bytes(unknown=4 * THREAD_BYTES)))
    spill_bytes: int = MEMORY
    """What is kept in memory between the two steps; more than that goes to a temporary file."""

    def __call__(
        self, scan: Scan, writing: Writing, placement: Placement, splits: Sequence[Split], report: Progress
    ) -> tuple[list[ReadTally], list[Written]]:
        """Rewrite the scan's rows into new files, and return what was read and what was written."""
        read = read_step(scan.reading, scan.storage, placement)
        write = write_step(scan.reading.schema, writing, placement)
        with closing(Spill(self.spill_bytes)) as spill, _Crew(self.threads) as crew:

            def place(split: Split) -> None:
                texts = pa.record_batch({"split": [split_text(split)]})
                for batch in crew.until_stopped(read([texts])):
                    spill.put(batch)

            def sort(task: int) -> list[pa.RecordBatch]:
                return list(crew.until_stopped(write(crew.until_stopped(spill.take(task)))))

            crew.run(place, splits, lambda done: report(Step("reading", done=done, total=len(splits))))
            tasks = spill.tasks
            written = crew.run(sort, tasks, lambda done: report(Step("writing", done=done, total=len(tasks))))
        batches = [batch for task in written for batch in task]
        return results.read_results(pa.Table.from_batches(batches, results.SCHEMA))


def threads_for(processors: int, memory: int) -> int:
    """Return how many threads run: as many as there are processors, and no more than memory suffices for.

    >>> threads_for(8, 64 * 1024**3), threads_for(64, 8 * 1024**3), threads_for(2, 256 * 1024**2)
    (8, 16, 1)
    """
    return max(1, min(processors, memory // THREAD_BYTES))


class _StoppedError(Exception):
    """The work ends because other work failed, or because of Ctrl-C."""


class _Crew:
    """Threads that share work, and end together: the first error, or Ctrl-C, stops all of them."""

    def __init__(self, threads: int) -> None:
        self._stopped = Event()
        # One thread is the caller's own.
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="zonal") if threads > 1 else None

    def __enter__(self) -> "_Crew":
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until no thread works any more: the folder that they write to may be swept next."""
        self._stopped.set()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, work: Callable[[Item], Made], items: Sequence[Item], tell: Callable[[int], None]) -> list[Made]:
        """Return what `work` makes of each item; `tell` hears how many are done, in the calling thread."""
        if self._pool is None:
            made = []
            for item in items:
                made.append(work(item))
                tell(len(made))
            return made
        futures = [self._pool.submit(work, item) for item in items]
        for number, done in enumerate(as_completed(futures), 1):
            done.result()
            tell(number)
        return [future.result() for future in futures]

    def until_stopped(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, as long as nothing else failed."""
        for batch in batches:
            if self._stopped.is_set():
                raise _StoppedError
            yield batch
