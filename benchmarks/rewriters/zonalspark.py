"""zonal itself, on the same Spark."""

from functools import partial

from benchmarks.rewriters.copies import CATALOG, TABLE, catalog_properties, table_folder
from benchmarks.rewriters.job import Job, Rewrite
from benchmarks.rewriters.sparksession import session
from zonal import open_table
from zonal.tables.table import Table


def start(job: Job, *, format_: str, kind: str) -> Rewrite:
    """Open the table; the rewrite takes all files and commits."""
    from zonal.verbs.cluster import cluster  # type: ignore[import-not-found]  # noqa: PLC0415

    session(job.folder)
    table = opened(format_, job)
    return lambda: cluster(table, by=list(job.columns), layout=kind, target_file_size=job.target)


def opened(format_: str, job: Job) -> Table:
    """Open a fresh table, or what became of it."""
    if format_ == "iceberg":
        return open_table(f"iceberg:{TABLE}", catalog=CATALOG, storage_options=catalog_properties(job.folder))
    return open_table(f"{format_}:{table_folder(job.folder)}")


delta_zorder = partial(start, format_="delta", kind="zorder")
delta_hilbert = partial(start, format_="delta", kind="hilbert")
iceberg_zorder = partial(start, format_="iceberg", kind="zorder")
iceberg_hilbert = partial(start, format_="iceberg", kind="hilbert")
