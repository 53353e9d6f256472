"""`advise`: recommend a layout for a table, learned from its queries, before anything is rewritten."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from zonal.advising.advice import Advice, Prices
from zonal.arguments import check_arguments
from zonal.errors import ZonalError, option
from zonal.study.advice_request import SAMPLE_ROWS, Progress, check_seed, request_of, silent
from zonal.study.drawing import is_wanted
from zonal.tables.protocol import Table
from zonal.tables.registry import read_snapshot, table_of
from zonal.workload.logs import Logs, PathLike
from zonal.workload.query import Workload

_NO_VIEWS: Mapping[str, str] = MappingProxyType({})


def advise(
    table: Table | str,
    *,
    queries: Workload | Logs | Sequence[PathLike] | PathLike,
    names: Sequence[str] = (),
    dialect: str | None = None,
    timezone: str = "UTC",
    views: Mapping[str, str] = _NO_VIEWS,
    target_file_size: int | str | None = None,
    half_life_days: float | None = None,
    cap: float | None = 0.2,
    scan_price: float = 5.0,
    core_hour_price: float = 0.05,
    storage_price: float = 0.023,
    keep_days: float = 7.0,
    per_day: float | None = None,
    hide_literals: bool = False,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
    picture: bool | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Say which layout would let the queries read least, what that costs, and whether it is worth it.

    Layouts are chosen with training queries and measured with held-out ones. Nothing is written and no Spark
    started; some row groups are read. The same arguments give the same advice.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        queries: logs (files or folders), `Logs`, which say themselves how they are to be read, or a workload.
        names: further names of the table in the logs.
        dialect: of the logs' SQL; by default, the one that parses most statements.
        timezone: of the sessions that ran the queries.
        views: the queries of views, by their names.
        target_file_size: of the new files, in bytes or as in `128MB`.
        half_life_days: days after which a query counts half.
        cap: the largest share of the total weight that one query may have, or None.
        scan_price: dollars per TB that queries read.
        core_hour_price: dollars per core-hour of the rewrite.
        storage_price: dollars per GB and month of storage.
        keep_days: days for which replaced files are kept.
        per_day: scans of the table per day; by default, the log's own rate.
        hide_literals: show no values that queries compare with.
        sample_rows: how many rows to sample.
        seed: of all random choices.
        picture: draw the files with the heaviest queries, for a page or a notebook; by default, of tables with up to
            500 files.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears the name of each step, and how much of how much is done.

    Example:
        >>> advice = zonal.advise("events", queries=["queries.sql"])
        >>> advice.verdict, [each.column for each in advice.filtered]
        ('leave', ['id', 'day'])
    """
    check_arguments(advise, locals())
    began = time.monotonic()
    _check(scan_price, core_hour_price, storage_price, keep_days, per_day, sample_rows)
    check_seed(seed)
    tell = progress or silent
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    tell("reading the table's metadata", 0, 0)
    snapshot = read_snapshot(source)
    if not isinstance(queries, Workload | Logs):
        queries = Logs(Logs.of(queries).paths, names, dialect, timezone, views, half_life_days, cap)
    request = request_of(
        source,
        snapshot,
        queries,
        timezone=timezone,
        target_file_size=target_file_size,
        prices=Prices(scan_price, core_hour_price, storage_price, keep_days),
        per_day=per_day,
        hide_literals=hide_literals,
        sample_rows=sample_rows,
        seed=seed,
        progress=tell,
    )
    advice = request.advice(picture=is_wanted(picture, snapshot))
    return replace(advice, seconds=time.monotonic() - began)


def _check(scan: float, core: float, storage: float, keep: float, per_day: float | None, rows: int) -> None:
    given = {"scan_price": scan, "core_hour_price": core, "storage_price": storage, "keep_days": keep}
    for name, value in given.items():
        if not 0 <= value < float("inf"):
            raise ZonalError(f"{option(name, value)} is not a number from 0 on.")
    if per_day is not None and not 0 < per_day < float("inf"):
        raise ZonalError(f"{option('per_day', per_day)} is not a number above 0.")
    if rows < 1:
        raise ZonalError(f"{option('sample_rows', rows)} is not a positive number.")
