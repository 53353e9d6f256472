"""The demonstration from end to end: make tables, measure them, cluster them on Spark, and measure them again."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from zonal.demo.asking import Question, Reads, compare, conditions, lookups
from zonal.demo.making import make_delta, make_iceberg
from zonal.demo.owndata import read_own
from zonal.demo.telemetry import CONDITIONS, KEYS, telemetry
from zonal.errors import ZonalError, quoted
from zonal.ranks import bind
from zonal.verbs.cluster import Clustering, Step, cluster, spark_runner
from zonal.verbs.rewriting import Runner
from zonal.verbs.show import TableHealth, health_of

MAKERS = {"delta": make_delta, "iceberg": make_iceberg}

Report = Callable[..., None]
"""Hears what is done now, and how much of how much of it is."""


@dataclass(frozen=True)
class Outcome:
    """What clustering one table changed, by the table's own metadata."""

    questions: tuple[Question, ...]
    before: TableHealth
    reads_before: tuple[Reads, ...]
    clustering: Clustering
    after: TableHealth
    reads_after: tuple[Reads, ...]

    @property
    def shares(self) -> tuple[float, float]:
        """Return the share of the table's bytes that a question reads on average, before and after."""
        before, after = (sum(read.share for read in each) / len(each) for each in (self.reads_before, self.reads_after))
        return before, after


@dataclass(frozen=True)
class Request:
    """What to demonstrate."""

    rows: int
    files: int
    formats: tuple[str, ...] = ("delta", "iceberg")
    data: Path | None = None
    """A user's own Parquet data instead of telemetry."""
    by: tuple[str, ...] | None = None
    into: Path | None = None
    """A new folder that keeps the tables."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns to cluster by."""
        return self.by if self.by is not None else KEYS


def tell(request: Request, told: Callable[[Outcome], None], report: Report, *, runner: Runner | None = None) -> None:
    """Run the demonstration, and pass on each table's outcome; `runner` runs the rewrites elsewhere than on Spark.

    Whatever goes wrong, nothing is left behind; without `into` nothing is left in any case.
    """
    _check(request)
    own = None
    if request.data is not None:
        report("reading")
        own = read_own(request.data, request.columns, request.files)
        lookups(own, request.columns)  # refuses columns without values, before anything starts
    report("starting Spark")
    running = nullcontext(runner) if runner is not None else spark_runner(None, "local[*]", None, None)
    with _folder(request.into) as folder, running as run_steps:
        report("making telemetry")
        table = telemetry(request.rows) if own is None else own
        plain = own is None and request.columns == KEYS
        questions = conditions(CONDITIONS) if plain else lookups(table, request.columns)
        for form in request.formats:
            told(_outcome(form, table, questions, request, folder / form, run_steps, report))


def _check(request: Request) -> None:
    if request.data is not None and request.by is None:
        raise ZonalError("Say which columns of your data to cluster by, as in --by ts,payload_id.")
    if request.data is not None and request.formats != ("delta",):
        raise ZonalError("Your own data becomes a Delta table: leave out --format.")
    into = request.into
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ZonalError(f"{quoted(str(into))} exists and is not an empty folder. Choose a new one with --into.")
    if into is not None and "iceberg" in request.formats and {"?", "%"} & set(str(into)):
        raise ZonalError(f"{quoted(str(into))} has a ? or a %, which mean something in a catalog's address. Rename it.")
    if request.data is None:
        bind(telemetry(1).schema, request.columns)


def _outcome(
    form: str,
    table: pa.Table,
    questions: Sequence[Question],
    request: Request,
    folder: Path,
    runner: Runner,
    report: Report,
) -> Outcome:
    folder.mkdir()
    made = MAKERS[form](
        table, request.files, folder, lambda done, total: report(f"{form}: appending files", done, total)
    )
    before = made.snapshot()
    health = health_of(before, request.columns)

    def step(step: Step) -> None:
        report(f"{form}: {step.name}", step.done, step.total)

    # Files as large as before: their number alone shall not explain what is skipped.
    size = _rounded(health.bytes // health.files)
    clustering = cluster(made, by=request.columns, target_file_size=size, runner=runner, progress=step)
    after = made.newest().snapshot()
    then, now = compare(before, after, questions)
    return Outcome(tuple(questions), health, tuple(then), clustering, health_of(after, request.columns), tuple(now))


def _rounded(size: int) -> int:
    """Round to two digits, for people who read the layout.

    >>> _rounded(1_809_291), _rounded(471_893), _rounded(7)
    (1800000, 470000, 7)
    """
    return round(size, 2 - len(str(size)))


@contextmanager
def _folder(into: Path | None) -> Iterator[Path]:
    if into is None:
        with tempfile.TemporaryDirectory(prefix="zonal-demo-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    was_there = into.exists()
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ZonalError(f"Can't make the folder {quoted(str(into))}: {error}") from None
    try:
        yield into
    except BaseException:  # an interrupt, too, must not leave half a table
        for made in [into] if not was_there else list(into.iterdir()):
            shutil.rmtree(made, ignore_errors=True)
        raise
