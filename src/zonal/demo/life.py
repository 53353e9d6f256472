"""The life of one table: it arrives, is clustered, spoiled by another tool, caught by an audit, and clustered again."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from zonal.auditing.audit import Audit
from zonal.demo.chapters import Chapter, Compacted, Compared
from zonal.demo.questions import Question, compare
from zonal.demo.telemetry import CONDITIONS, KEYS
from zonal.demo.text import LEFT, advised, arrived, audited, clustered, compacted, compared
from zonal.demo.writers import WRITERS
from zonal.display import Display
from zonal.history.store import History
from zonal.rewriting.in_place import Runner
from zonal.rewriting.learned import AUTO
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.outcome import Clustering
from zonal.tables.protocol import Rewritable
from zonal.values.progress import Progress, Step
from zonal.verbs.advise import advise
from zonal.verbs.audit import audit
from zonal.verbs.cluster import cluster
from zonal.verbs.explain import Explanation, explain
from zonal.verbs.show import health_of
from zonal.workload.logs import Logs
from zonal.workload.query import Workload

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
    report: Progress


def live(form: str, scene: Scene, folder: Path, tell: Callable[[Chapter], None]) -> str:
    """Lead a new table of this format through its life, and tell each chapter as soon as it ends.

    Return the page of the audit that matters most.
    """

    def report(step: Step) -> None:
        scene.report(replace(step, name=f"{form}: {step.name}"))

    def audit_now() -> Audit:
        audits.append(
            audit(now(), queries=scene.queries, database=scene.database, display=Display(True), progress=report)
        )
        tell(audited(audits))
        return audits[-1]

    audits: list[Audit] = []
    folder.mkdir()
    now = WRITERS[form].make(scene.rows, scene.files, folder, report).newest
    health = health_of(now().snapshot(), scene.by or KEYS)
    tell(arrived(health))
    # Files as large as before, so that their number alone doesn't explain what is skipped.
    size = _rounded(health.table.bytes // health.table.files)
    if isinstance(scene.queries, Logs):
        advice = advise(now(), queries=scene.queries, target_file_size=size, progress=report)
        tell(advised(advice, Path(scene.queries.paths[0]).name))
        if advice.verdict != "cluster":
            only = audit_now()
            tell(LEFT)
            return _page(only, scene, report)
    rewrite = partial(cluster, database=scene.database, spark=scene.runner, progress=report)
    _cluster(now, scene, partial(rewrite, files=NewFiles(target_file_size=size)), tell)
    audit_now()
    report(Step("another tool compacts it"))
    tell(compacted(_compact(form, now, folder)))
    alarm = audit_now()
    tell(clustered(rewrite(now()), now().snapshot().traits.version_word, again=True))
    audit_now()
    return _page(alarm, scene, report)


def _cluster(
    now: Callable[[], Rewritable], scene: Scene, rewrite: Callable[..., Clustering], tell: Callable[[Chapter], None]
) -> None:
    """Cluster the table by its queries or the user's columns, and compare what the questions read."""
    before, then = now().snapshot(), _explained(now(), scene)
    by_queries = {"layout": AUTO, "queries": scene.queries}
    done = rewrite(now(), **(by_queries if scene.by is None else {"by": scene.by}))
    tell(clustered(done, before.traits.version_word))
    reads = [tuple(each) for each in compare(before, now().snapshot(), scene.questions)]
    both = None if then is None else (then, _explained(now(), scene) or then)
    tell(compared(Compared(scene.questions, reads[0], reads[1], both)))


def _explained(table: Rewritable, scene: Scene) -> Explanation | None:
    """Explain one query of the log, of the table as it is now."""
    return None if isinstance(scene.queries, Workload) else explain(table, where=CONDITIONS[0], footers=False)


def _compact(form: str, now: Callable[[], Rewritable], folder: Path) -> Compacted:
    """Let another tool join the files."""
    writer, files = WRITERS[form], len(now().snapshot().files)
    began = time.monotonic()
    writer.compact(folder, -(-files // _JOINED))
    seconds, after = time.monotonic() - began, now().snapshot()
    return Compacted(writer.deed, after.traits.version_word, after.version, files, len(after.files), seconds)


def _page(shown: Audit, scene: Scene, report: Progress) -> str:
    """Draw the page of an audit, with all audits and rewrites in the history."""
    from zonal.report.audit import audit_blocks  # noqa: PLC0415
    from zonal.report.page.blocks import blocks_page  # noqa: PLC0415 - reads the charts' library

    report(Step("drawing the page"))
    with History.open(scene.database) as history:
        audits, runs = history.audits(shown.table.location), history.runs(shown.table.location)
        return blocks_page(audit_blocks(shown, audits, runs))


def _rounded(size: int) -> int:
    """Round to two digits, for people who read the layout.

    >>> _rounded(1_809_291), _rounded(471_893), _rounded(7)
    (1800000, 470000, 7)
    """
    return round(size, 2 - len(str(size)))
