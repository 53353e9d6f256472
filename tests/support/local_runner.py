"""Runs the steps of a rewrite in this process, without Spark: the same functions, the same bytes between them."""

from collections import defaultdict

import pyarrow as pa

from zonal.worker.exchange.results import read_results
from zonal.worker.splits import split_text
from zonal.worker.tasks import read_step, write_step


def run_here(scan, writing, placement, splits, report=None):  # noqa: ARG001 - as every runner
    """Shuffle by hand what the first step gives, and let the second one write it."""
    read = read_step(scan.reading, scan.storage, placement)
    tasks = defaultdict(list)
    for split in splits:
        for batch in read(iter([pa.record_batch({"split": [split_text(split)]})])):
            for task in set(batch.column(0).to_pylist()):
                tasks[task].append(batch.filter(pa.compute.equal(batch.column(0), task)))
    write = write_step(scan.reading.schema, writing, placement)
    results = [result for task in sorted(tasks) for result in write(iter(tasks[task]))]
    return read_results(pa.Table.from_batches(results))
