"""Run the two steps of a rewrite in this process, without Spark: for rows that are few, or here already."""

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from zonal.plan.placement import Placement
from zonal.plan.rewrite import ReadTally, Scan, Writing, Written
from zonal.rewriting.in_place import Report
from zonal.worker.exchange.results import read_results
from zonal.worker.splits import Split, split_text
from zonal.worker.tasks import read_step, write_step


def run_in_process(
    scan: Scan, writing: Writing, placement: Placement, splits: Sequence[Split], report: Report
) -> tuple[list[ReadTally], list[Written]]:
    """Rewrite the scan's rows into new files; between the steps, they are in memory as compressed payloads."""
    read = read_step(scan.reading, scan.storage, placement)
    tasks: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for number, split in enumerate(splits):
        report("reading", number, len(splits))
        for batch in read(iter([pa.record_batch({"split": [split_text(split)]})])):
            for task in pc.unique(batch.column(0)).to_pylist():
                tasks[task].append(batch.filter(pc.equal(batch.column(0), task)))
    write = write_step(scan.reading.schema, writing, placement)
    results: list[pa.RecordBatch] = []
    for number, task in enumerate(sorted(tasks)):
        report("writing", number, len(tasks))
        results += write(iter(tasks.pop(task)))
    return read_results(pa.Table.from_batches(results))
