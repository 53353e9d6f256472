"""Run the demonstration: make rows and questions, and lead one table per format through its life."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from zonal.demo.chapters import Chapter, Outcome
from zonal.demo.life import Scene, live
from zonal.demo.own_data import read_own
from zonal.demo.query_log import NAME, kinds, log_text
from zonal.demo.questions import logged, lookups, workload_of
from zonal.demo.telemetry import telemetry
from zonal.errors import ZonalError, quoted
from zonal.layouts.ranks import bind
from zonal.rewriting.in_place import Runner
from zonal.rewriting.places import runner_at
from zonal.spark.place import Spark
from zonal.values.progress import Progress, Step
from zonal.workload.logs import Logs

LOG, HISTORY, PAGE = "queries.sql", "history.db", "report.html"
"""Names of the files beside the tables."""
OWN_FORMAT = "delta"
"""The format of tables made of a user's own data."""

OnChapter = Callable[[str, int, Chapter], None]
"""Called with a table's format, and the number and the chapter that ended."""


@dataclass(frozen=True)
class DemoRequest:
    """What to demonstrate."""

    rows: int
    files: int
    formats: tuple[str, ...] = ("delta", "iceberg")
    data: Path | None = None
    """A user's own Parquet data instead of telemetry."""
    by: tuple[str, ...] | None = None
    """Columns to cluster by; without them, a log of queries says how."""
    into: Path | None = None
    """A new folder that keeps the tables, the log and the history."""
    page: Path | None = None
    """Where to write the page; by default into that folder, or a new file among the system's temporary ones."""


def tell(
    request: DemoRequest, on_chapter: OnChapter, report: Progress, *, runner: Runner | None = None
) -> list[Outcome]:
    """Run the demonstration and return each table's story; `runner` runs the rewrites elsewhere than on Spark.

    Whatever goes wrong, nothing is left behind; without `into` nothing but the pages is left in any case.
    """
    _check(request)
    own = _own(request, report)
    report(Step("starting Spark"))
    running = runner_at(runner or Spark(master="local[*]"))
    with _folder(request.into) as folder, running as run_steps:
        report(Step("making telemetry"))
        rows = telemetry(request.rows) if own is None else own
        scene = _scene(request, rows, folder, run_steps, report)
        chapters: dict[str, list[Chapter]] = {form: [] for form in request.formats}

        def hear(form: str, chapter: Chapter) -> None:
            chapters[form].append(chapter)
            on_chapter(form, len(chapters[form]), chapter)

        pages = {form: live(form, scene, folder / form, partial(hear, form)) for form in request.formats}
        paths = _write_pages(request, pages)
    return [Outcome(form, tuple(chapters[form]), paths[form]) for form in request.formats]


def history_url(folder: Path) -> str:
    """Return the address of the history of a demonstration in this folder."""
    return f"sqlite:///{folder / HISTORY}"


def _check(request: DemoRequest) -> None:
    if request.data is not None and request.by is None:
        raise ZonalError("Say which columns of your data to cluster by, as in --by ts,payload_id.")
    if request.data is not None and request.formats != (OWN_FORMAT,):
        raise ZonalError("Your own data becomes a Delta table: leave out --format.")
    into = request.into
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ZonalError(f"{quoted(str(into))} exists and is not an empty folder. Choose a new one with --into.")
    if into is not None and {"?", "%"} & set(str(into)):
        raise ZonalError(f"{quoted(str(into))} has a ? or a %, which mean something in a database's URL. Rename it.")
    if request.data is None and request.by is not None:
        bind(telemetry(1).schema, request.by)


def _own(request: DemoRequest, report: Progress) -> pa.Table | None:
    """Read the user's own data; columns without values are refused before anything starts."""
    if request.data is None or request.by is None:
        return None
    report(Step("reading"))
    rows = read_own(request.data, request.by, request.files)
    lookups(rows, request.by)
    return rows


def _scene(request: DemoRequest, rows: pa.Table, folder: Path, runner: Runner, report: Progress) -> Scene:
    """Choose the questions: a log of SQL, or look-ups in the given columns."""
    database = history_url(folder)
    if request.by is not None:
        questions = tuple(lookups(rows, request.by))
        return Scene(rows, request.files, request.by, questions, workload_of(questions), database, runner, report)
    path, made = folder / LOG, kinds()
    path.write_text(log_text(made), encoding="utf-8")
    logs = Logs((path,), names=(NAME,))
    return Scene(rows, request.files, None, tuple(logged(made)), logs, database, runner, report)


def _write_pages(request: DemoRequest, pages: Mapping[str, str]) -> dict[str, Path]:
    """Write one page per table: all of them, or none."""
    written: dict[str, Path] = {}
    try:
        for form, page in pages.items():
            written[form] = _page_path(request, form)
            written[form].write_text(page, encoding="utf-8")
    except BaseException as error:
        _remove(written.values())
        if isinstance(error, OSError):
            raise ZonalError(f"The page can't be written: {error}.") from None
        raise
    return written


def _page_path(request: DemoRequest, form: str) -> Path:
    """Return where a table's page goes; the pages of several tables have their formats in their names."""
    path = request.page or (request.into / PAGE if request.into is not None else None)
    if path is None:
        number, name = tempfile.mkstemp(prefix=f"zonal-demo-{form}-", suffix=".html")
        os.close(number)
        return Path(name)
    return path if len(request.formats) == 1 else path.with_name(f"{path.stem}-{form}{path.suffix}")


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
        _remove([into] if not was_there else list(into.iterdir()))
        raise


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
