"""Report the progress of a running Spark job, the tasks of each stage as they finish, and cancel it on an interrupt."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from zonal.spark.grants import Idle, lacking
from zonal.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark import SparkContext, SparkJobInfo, SparkStageInfo, StatusTracker
    from pyspark.sql import SparkSession

SECONDS = 0.25
"""Interval at which a classic session's jobs are polled; Connect servers report by themselves, every two seconds."""

_GROUP = "spark.jobGroup.id"


@dataclass(frozen=True)
class Stage:
    """A stage of the job, between two shuffles, and how many of its tasks are done."""

    number: int
    """Counted from 1 in the order in which stages run."""
    done: int
    tasks: int


Report = Callable[[Stage], None]


@contextmanager
def watch(spark: "SparkSession", report: Report, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Report each stage of the queries that this thread runs meanwhile, whenever one of its tasks finished.

    `wait` hears of queries of which no task runs for some time. Reports come from another thread or from this one, one
    at a time, and none after the end; the last ones may be missing. Whatever goes wrong with them, the queries go on.
    """
    reporter = _Reporter(report)
    idle = Idle(lambda: lacking(spark), wait or _unheard)
    with _watch_connect(spark, reporter, idle) if is_connect(spark) else _watch_classic(spark, reporter, idle):
        yield


def _unheard(notice: str) -> None:
    """Tell nobody."""


class _Reporter:
    """Numbers the stages, and passes on what changed."""

    def __init__(self, report: Report) -> None:
        self.report: Report | None = report
        self.lock = Lock()
        self.numbers: dict[int, int] = {}
        self.last: dict[int, Stage] = {}

    def __call__(self, stages: Iterable[tuple[int, int, int]]) -> None:
        """Take (id, tasks done, tasks) of the stages that have begun."""
        with self.lock:
            for identifier, done, tasks in sorted(stages):
                number = self.numbers.setdefault(identifier, len(self.numbers) + 1)
                stage = Stage(number, min(done, tasks), tasks)
                if self.report is not None and self.last.get(number) != stage:
                    self.last[number] = stage
                    try:
                        self.report(stage)
                    except Exception:  # a bar that fails is not called again
                        self.report = None

    def close(self) -> None:
        """Report nothing any more."""
        with self.lock:
            self.report = None


@contextmanager
def _watch_connect(spark: "SparkSession", reporter: _Reporter, idle: Idle) -> Iterator[None]:
    def handle(stages: Iterable[Any] | None = None, inflight_tasks: int = 0, done: bool = False, **_: object) -> None:
        with suppress(Exception):
            if not done:
                idle.look(waits=not inflight_tasks)
            # Stages that wait are listed, too, and so are those whose shuffle exists already: they never begin.
            begun = [stage for stage in stages or () if stage.num_completed_tasks]
            reporter((stage.stage_id, stage.num_completed_tasks, stage.num_tasks) for stage in begun)

    handler: Any = handle  # versions of pyspark declare it differently
    with suppress(Exception):
        spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        reporter.close()
        with suppress(Exception):
            spark.removeProgressHandler(handler)


@contextmanager
def _watch_classic(spark: "SparkSession", reporter: _Reporter, idle: Idle) -> Iterator[None]:
    """Poll the status tracker for jobs of this thread's group; a group that the caller has set stays."""
    stop, interrupted, thread, ours = Event(), Event(), None, False
    with suppress(Exception):
        context = spark.sparkContext
        group = context.getLocalProperty(_GROUP)
        if group is None:
            group, ours = f"zonal-{uuid4()}", True
            context.setLocalProperty(_GROUP, group)
        earlier = frozenset(context.statusTracker().getJobIdsForGroup(group))
        thread = Thread(target=_poll, args=(context, group, earlier, reporter, idle, stop, interrupted), daemon=True)
        thread.start()
    try:
        with _noted_interrupts(interrupted):
            yield
    finally:
        stop.set()
        if thread is not None:
            thread.join(timeout=2)
        reporter.close()
        if ours:
            with suppress(Exception):
                # The stub knows no None, which removes a property.
                spark.sparkContext.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


@contextmanager
def _noted_interrupts(interrupted: Event) -> Iterator[None]:
    """Set the event at a signal that interrupts this thread, before its handler is called.

    `DataFrame.toArrow` waits for the end of its job even then, and a job that gets no executor has none: another thread
    has to cancel it, for this one is in the middle of a call to the JVM.
    """
    numbers = (signal.SIGINT, signal.SIGTERM) if current_thread() is main_thread() else ()
    before = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}

    def note(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _poll(
    context: "SparkContext",
    group: str,
    earlier: frozenset[int],
    reporter: _Reporter,
    idle: Idle,
    stop: Event,
    interrupted: Event,
) -> None:
    with suppress(Exception):  # the session may be stopped meanwhile
        last = False
        while not last:
            last = stop.wait(SECONDS)  # poll once more when the queries are done
            tracker = context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group) if job not in earlier]
            known = [job for job in jobs if job is not None]
            stages = list(_stages(tracker, known))
            reporter((number, stage.numCompletedTasks, stage.numTasks) for number, stage in stages)
            if interrupted.is_set():
                for job in known:
                    if job.status == "RUNNING":
                        context._jsc.sc().cancelJob(job.jobId)
            elif not last:
                running = any(job.status == "RUNNING" for job in known)
                idle.look(waits=running and not any(stage.numActiveTasks for _, stage in stages))


def _stages(tracker: "StatusTracker", jobs: Iterable["SparkJobInfo"]) -> "Iterator[tuple[int, SparkStageInfo]]":
    for number in sorted({int(stage) for job in jobs for stage in job.stageIds}):
        stage = tracker.getStageInfo(number)
        # A stage that waits has no info; one whose shuffle exists already never gets any.
        if stage is not None and stage.numActiveTasks + stage.numCompletedTasks:
            yield number, stage
