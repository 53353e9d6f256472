"""The life of one table: it arrives, is clustered, spoiled by another tool, caught by an audit, and clustered again."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.demo.chapters import Advised, Arrived, Audited, Chapter, Compacted, Compared, Left, Rewritten
from zonal.demo.questions import Question, compare
from zonal.demo.telemetry import CONDITIONS, KEYS
from zonal.demo.writers import WRITERS
from zonal.display import Display
from zonal.history.store import History
from zonal.rewriting.in_place import Runner
from zonal.rewriting.learned import AUTO
from zonal.rewriting.new_files import NewFiles
from zonal.snapshot import Snapshot
from zonal.values.progress import Step
from zonal.verbs.advise import advise
from zonal.verbs.audit import audit
from zonal.verbs.cluster import cluster
from zonal.verbs.explain import Explanation, explain
from zonal.verbs.show import health_of
from zonal.workload.logs import Logs
from zonal.workload.query import Workload

Report = Callable[..., None]
"""Called with the current step, how much of it is done, and its total."""

_JOINED = 8
"""Files that the other tool joins into one."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What the lives of all tables of a demonstration have in common."""

    rows: pa.Table
    files: int
    by: tuple[str, ...] | None
    """The columns to cluster by; None where the log of queries decides."""
    questions: tuple[Question, ...]
    queries: Logs | Workload
    """The queries of all questions: a log where there is one."""
    database: str
    """The URL of the history."""
    runner: Runner
    report: Report

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns to show."""
        return self.by if self.by is not None else KEYS


def live(form: str, scene: Scene, folder: Path, on_chapter: Callable[[Chapter], None]) -> str:
    """Lead a new table of this format through its life, and report each chapter as soon as it ends.

    Return the page of the audit that matters most.
    """
    life = _Life(form, scene, folder, on_chapter)
    life.arrive()
    if isinstance(scene.queries, Logs):
        advice = life.advise(scene.queries)
        if advice.verdict != "cluster":
            only = life.audit()
            life.on_chapter(Left())
            return life.page(only)
    life.cluster()
    life.audit()
    life.compact()
    alarm = life.audit()
    life.cluster(again=True)
    life.audit()
    return life.page(alarm)


class _Life:
    def __init__(self, form: str, scene: Scene, folder: Path, on_chapter: Callable[[Chapter], None]) -> None:
        self.form, self.scene, self.folder, self.on_chapter = form, scene, folder, on_chapter
        self.ratios: tuple[float | None, ...] = ()
        folder.mkdir()
        self.table = WRITERS[form].make(
            scene.rows, scene.files, folder, lambda done, total: self.report("appending files", done, total)
        )
        self.size = 0

    def report(self, what: str, done: int = 0, total: int = 0) -> None:
        self.scene.report(f"{self.form}: {what}", done, total)

    def hear(self, step: Step) -> None:
        self.report(step.name, step.done, step.total)

    def arrive(self) -> None:
        health = health_of(self.table.snapshot(), self.scene.columns)
        # Files as large as before, so that their number alone doesn't explain what is skipped.
        self.size = _rounded(health.table.bytes // health.table.files)
        self.on_chapter(Arrived(health))

    def advise(self, log: Logs) -> Advice:
        advice = advise(self.table, queries=log, target_file_size=self.size, progress=self.hear)
        self.on_chapter(Advised(advice, Path(log.paths[0])))
        return advice

    def cluster(self, *, again: bool = False) -> None:
        """Cluster the table by its queries or the user's columns; `again` by the layout that the table records."""
        scene, before = self.scene, self.table.snapshot()
        explained = self._explained() if not again else None

        rewrite = partial(cluster, self.table, database=scene.database, spark=scene.runner, progress=self.hear)
        if again:
            done = rewrite()
        elif scene.by is not None:
            done = rewrite(by=scene.by, files=NewFiles(target_file_size=self.size))
        else:
            done = rewrite(layout=AUTO, queries=scene.queries, files=NewFiles(target_file_size=self.size))
        self.table = self.table.newest()
        self.on_chapter(Rewritten(done, again, before.traits.version_word))
        if not again:
            self._compare(before, explained)

    def _explained(self) -> Explanation | None:
        """Explain one query, of the table as it is now."""
        if isinstance(self.scene.queries, Workload):
            return None
        return explain(self.table, where=CONDITIONS[0], footers=False)

    def _compare(self, before: Snapshot, explained: Explanation | None) -> None:
        then, now = compare(before, self.table.snapshot(), self.scene.questions)
        now_explained = self._explained()
        both = None if explained is None or now_explained is None else (explained, now_explained)
        self.on_chapter(Compared(self.scene.questions, tuple(then), tuple(now), both))

    def audit(self) -> Audit:
        scene = self.scene
        result = audit(
            self.table,
            queries=scene.queries,
            database=scene.database,
            display=Display(picture=True),
            progress=self.hear,
        )
        self.ratios = (*self.ratios, result.reads.ratio)
        self.on_chapter(Audited(result, self.ratios))
        return result

    def compact(self) -> None:
        """Let another tool join the files."""
        writer, files = WRITERS[self.form], len(self.table.snapshot().files)
        self.report("another tool compacts it")
        began = time.monotonic()
        writer.compact(self.folder, -(-files // _JOINED))
        seconds = time.monotonic() - began
        self.table = self.table.newest()
        after = self.table.snapshot()
        word = after.traits.version_word
        self.on_chapter(Compacted(writer.deed, word, after.version, files, len(after.files), seconds))

    def page(self, shown: Audit) -> str:
        """Write the page of an audit, with all audits and rewrites in the history."""
        from zonal.report.audit import audit_blocks  # noqa: PLC0415
        from zonal.report.page.blocks import blocks_page  # noqa: PLC0415 - reads the charts' library

        self.report("drawing the page")
        with History.open(self.scene.database) as history:
            audits, runs = history.audits(shown.table.location), history.runs(shown.table.location)
            return blocks_page(audit_blocks(shown, audits, runs))


def _rounded(size: int) -> int:
    """Round to two digits, for people who read the layout.

    >>> _rounded(1_809_291), _rounded(471_893), _rounded(7)
    (1800000, 470000, 7)
    """
    return round(size, 2 - len(str(size)))
