"""`advise`: recommend a layout for a table, learned from its queries, before anything is rewritten."""

import time
from collections.abc import Mapping
from dataclasses import replace

from zonal.advising.advice import Advice, Prices
from zonal.arguments import check_arguments
from zonal.display import Display
from zonal.errors import ZonalError, option
from zonal.study.advice_request import request_of
from zonal.study.drawing import is_wanted
from zonal.study.sampling import Sampling
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot, table_of
from zonal.values.progress import Progress, Step, only_notices
from zonal.workload.logs import Queries


def advise(
    table: Table | str,
    *,
    queries: Queries,
    target_file_size: int | str | None = None,
    prices: Prices | None = None,
    per_day: float | None = None,
    sampling: Sampling | None = None,
    display: Display | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Say which layout would let the queries read least, what that costs, and whether it is worth it.

    Layouts are chosen with training queries and measured with held-out ones. Nothing is written and no Spark
    started; some row groups are read. The same arguments give the same advice.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        queries: paths of logs, `Logs`, which say how they are to be read, or a workload.
        target_file_size: of the new files, in bytes or as in `128MB`; by default, as for `cluster`.
        prices: of reading, rewriting and storage, as `Prices`.
        per_day: scans of the table per day; by default, the log's own rate.
        sampling: how many rows to sample, and the seed of all random choices, as `Sampling`.
        display: what the result shows, as `Display`.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> advice = zonal.advise("events", queries=["queries.sql"])
        >>> advice.verdict, [each.column for each in advice.workload.filtered]
        ('leave', ['id', 'day'])
    """
    check_arguments(advise, locals())
    began = time.monotonic()
    shown, drawn = display or Display(), sampling or Sampling()
    _check(prices or Prices(), per_day, drawn)
    report = progress or only_notices
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    report(Step("reading the table's metadata"))
    snapshot = read_snapshot(source, report)
    request = request_of(
        source,
        snapshot,
        queries,
        target_file_size=target_file_size,
        prices=prices,
        per_day=per_day,
        hide_literals=shown.hide_literals,
        sampling=drawn,
        progress=report,
    )
    advice = request.advice(picture=is_wanted(shown.picture, snapshot))
    return replace(advice, basis=replace(advice.basis, seconds=time.monotonic() - began))


def _check(prices: Prices, per_day: float | None, sampling: Sampling) -> None:
    prices.check()
    sampling.check()
    if per_day is not None and not 0 < per_day < float("inf"):
        raise ZonalError(f"{option('per_day', per_day)} is not a number above 0.")
