"""The command `zonal audit`: its options, and where its result goes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from zonal.cli.options import (
    OUTPUT,
    Catalog,
    DatabaseUrl,
    HideLiterals,
    LogCap,
    LogDialect,
    LogHalfLife,
    LogNames,
    LogTimezone,
    LogViews,
    MaybeLogPaths,
    NoDatabase,
    ReportTo,
    SampleRows,
    Seed,
    StorageOptions,
    check_report,
    is_given,
    opened,
    pairs,
    printing,
    views_in,
    warn,
    write_report,
)
from zonal.cli.options import history as kept_in
from zonal.display import Display
from zonal.errors import ZonalError, naming_flags, quoted
from zonal.report.terminal.progress import step_bar

if TYPE_CHECKING:
    from zonal.auditing.audit import Audit
    from zonal.cli.config import TableConfig
    from zonal.history.store import History
    from zonal.report.blocks import Block
    from zonal.report.command import CommandOptions
    from zonal.study.audited_version import Auditing
    from zonal.tables.protocol import Table
    from zonal.workload.logs import Logs

FAILED, ALERT = 1, 2


class AuditOutput(str, Enum):
    """What audits are printed as."""

    text = "text"
    json = "json"
    prometheus = "prometheus"


def audit(
    context: typer.Context,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="A table, named as for `show`; or many of them, by --config.", show_default=False
        ),
    ] = None,
    queries: MaybeLogPaths = None,
    name: LogNames = None,
    dialect: LogDialect = None,
    timezone: LogTimezone = "UTC",
    view: LogViews = None,
    half_life: LogHalfLife = None,
    cap: LogCap = 0.2,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Leave out older queries: 7d, 12h, or a date.", show_default=False),
    ] = None,
    sample: Annotated[int, typer.Option(metavar="NUMBER", help="The most queries to replay.")] = 1_000,
    at: Annotated[
        int | None, typer.Option(metavar="VERSION", help="Audit an older version.", show_default=False)
    ] = None,
    history: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Audit the last N versions, from metadata alone.", show_default=False),
    ] = None,
    trend: Annotated[
        bool, typer.Option("--trend", help="Print audits, rewrites and the ledger so far, and stop.")
    ] = False,
    alert_ratio: Annotated[float, typer.Option(metavar="RATIO", help="Alert above this ratio.")] = 0.3,
    alert_worse: Annotated[
        float, typer.Option(metavar="PART", help="Alert if worse than the best of the last audits by more than this.")
    ] = 0.5,
    alert_window: Annotated[int, typer.Option(metavar="NUMBER", help="How many audits those are.")] = 10,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="POST the audit as JSON here on an alert.",
            envvar="ZONAL_WEBHOOK",
            show_default=False,
        ),
    ] = None,
    database: DatabaseUrl = None,
    no_database: NoDatabase = False,
    metadata_only: Annotated[
        bool, typer.Option("--metadata-only", help="Read no rows and footers of the table.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Audit all tables of a file.", show_default=False)
    ] = None,
    hide_literals: HideLiterals = False,
    sample_rows: SampleRows = 60_000,
    seed: Seed = 0,
    catalog: Catalog = None,
    storage_option: StorageOptions = None,
    output: Annotated[AuditOutput, OUTPUT] = AuditOutput.text,
    report: ReportTo = None,
) -> None:
    """Replay a log of queries on a table's statistics: what they read, whether that drifts, and which commit did it."""
    from zonal.auditing.drift import Alerts  # noqa: PLC0415 - `zonal --help` stays fast
    from zonal.report.machine.webhook import check_url  # noqa: PLC0415
    from zonal.study.audited_version import Auditing  # noqa: PLC0415
    from zonal.study.sampling import Sampling  # noqa: PLC0415
    from zonal.workload.logs import Logs  # noqa: PLC0415
    from zonal.workload.since import parse_since  # noqa: PLC0415

    check_report(report)
    if webhook is not None:
        check_url(webhook)
    outputs = _Outputs(output, webhook, report, alert_ratio)
    if config is not None:
        _refuse_others(context, _WITH_CONFIG, "--config names tables with their logs and limits", "give no --config")
        run = _Run(seed, hide_literals=hide_literals, metadata_only=metadata_only)
        raise typer.Exit(_many(config, database, outputs, run, no_database=no_database))
    if table is None:
        raise ZonalError("Name a table, or give a file of them with --config.")
    with kept_in(database, none=no_database) as kept:
        if trend:
            _refuse_others(context, _WITH_TREND, "--trend prints what was audited before", "give no --trend")
            Alerts(alert_ratio).check()
            _print_trend(opened(table, catalog, storage_option), kept, alert_ratio, output, report)
            return
        if not queries:
            raise ZonalError("Give the log of queries to replay with --queries.")
        when = None if since is None else parse_since(since)
        logs = Logs(queries, name or (), dialect, timezone, views_in(view), half_life, cap, when)
        how = Auditing(
            Sampling(sample, sample_rows, seed, not metadata_only),
            Alerts(alert_ratio, alert_worse, alert_window),
            Display(report is not None, hide_literals),
        )
        job = _Job(table, logs, how, catalog, pairs("--storage-option", storage_option), tuple(view or ()))
        if history is not None:
            if report is not None or at is not None:
                raise ZonalError("--history prints many versions: leave out --report and --at, which are about one.")
            if is_given(context, "webhook"):
                raise ZonalError("--history is about past versions, which raise no alarm: leave out --webhook.")
            outputs.versions(job.versions(history))
            return
        trend_of = kept if at is None else None  # today's audit of an older version is no point of the trend
        raise typer.Exit(outputs.one(job.run(kept, at), trend_of, job.given))


_WITH_CONFIG = frozenset(
    ("config", "database", "no_database", "webhook", "hide_literals", "metadata_only", "seed", "output", "report")
)


_WITH_TREND = frozenset(
    ("table", "trend", "database", "no_database", "alert_ratio", "output", "catalog", "storage_option", "report")
)


def _refuse_others(context: typer.Context, known: frozenset[str], why: str, instead: str) -> None:
    """Refuse options that would have no effect."""
    for name in context.params:
        if name not in known and is_given(context, name):
            shown = "TABLE" if name == "table" else f"--{name.replace('_', '-')}"
            raise ZonalError(f"{why}: leave out {shown}, or {instead}.")


@dataclass(frozen=True)
class _Job:
    """A table to audit."""

    table: str
    logs: "Logs"
    how: "Auditing"
    catalog: str | None
    storage_options: dict[str, str]
    views: tuple[str, ...] = ()
    """As they were given: `NAME=FILE`."""

    @property
    def given(self) -> "CommandOptions":
        """Return the arguments that a command for the same table repeats, without the values of storage options."""
        from zonal.report.command import CommandOptions  # noqa: PLC0415

        return CommandOptions(self.table, self.logs, self.views, self.catalog, tuple(self.storage_options))

    def run(self, kept: "History | None", at: int | None = None) -> "Audit":
        """Audit a version, the newest one unless told; warn at once if the audit can't be recorded."""
        from zonal.verbs.audit import NOT_KEPT  # noqa: PLC0415
        from zonal.verbs.audit import audit as replay  # noqa: PLC0415

        with step_bar() as progress:
            audit = replay(
                self.table, queries=self.logs, at=at, sampling=self.how.sampling, alerts=self.how.alerts,
                display=self.how.display, database=kept, catalog=self.catalog, storage_options=self.storage_options,
                progress=progress,
            )  # fmt: skip
        for note in audit.made.notes:
            if note.startswith(NOT_KEPT):
                warn(f"{quoted(self.table, limit=200)}: {note}")
        return audit

    def versions(self, count: int) -> "tuple[Audit, ...]":
        """Audit the last versions."""
        from zonal.verbs.audit import audit_versions  # noqa: PLC0415

        self.how.check()
        with step_bar() as progress:
            return audit_versions(
                self.table, queries=self.logs, versions=count, sampling=self.how.sampling, display=self.how.display,
                catalog=self.catalog, storage_options=self.storage_options, progress=progress,
            )  # fmt: skip


@dataclass(frozen=True)
class _Outputs:
    """Where audits go: the output, a webhook, and a page."""

    output: AuditOutput
    webhook: str | None
    report: Path | None
    limit: float
    """The ratio above which an alert is due, drawn on the page."""

    def one(self, audit: "Audit", kept: "History | None", given: "CommandOptions") -> int:
        """Call the webhook, print an audit, write its page, and return the exit code."""
        from zonal.report.audit import audit_blocks  # noqa: PLC0415

        def paged() -> "Iterator[Block]":
            audits = () if kept is None else kept.audits(audit.table.location)
            runs = () if kept is None else kept.runs(audit.table.location)
            return audit_blocks(audit, audits, runs, limit=self.limit, given=given)

        return self._deliver([audit], audit, audit_blocks(audit, given=given), paged)

    def many(
        self,
        audited: "list[tuple[Audit, CommandOptions]]",
        failed: list[tuple[str, str]],
        kept: "History | None",
    ) -> int:
        """Deliver the audits of many tables with an overview of them, as `one` does."""
        from zonal.report.many_audits import Overview, overview_blocks, printed_blocks  # noqa: PLC0415

        audits = [each for each, _ in audited]
        past = {} if kept is None else {each.table.location: kept.audits(each.table.location) for each in audits}
        overview = Overview(audits, past, failed, [given for _, given in audited])
        code = self._deliver(audits, overview.values, printed_blocks(overview), lambda: overview_blocks(overview))
        return FAILED if failed else code

    def _deliver(
        self,
        audits: "Sequence[Audit]",
        result: object,
        printed: "Iterator[Block]",
        paged: "Callable[[], Iterator[Block]]",
    ) -> int:
        """Send, print and write audits; an alert's exit code is returned even if they can't be printed or written."""
        from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415

        alarmed = [each for each in audits if each.judgment.alerts]
        for each in alarmed if self.webhook is not None else []:
            self._call(each)
        try:
            with printing():
                self._print(result, audits)
                if self.output is AuditOutput.text:
                    print_blocks(Console(), printed)
            if self.report is not None:
                from zonal.report.page.blocks import blocks_page  # noqa: PLC0415

                write_report(self.report, blocks_page(paged()))
        except ZonalError as error:
            if not alarmed:
                raise
            warn(str(error))
        return ALERT if alarmed else 0

    def versions(self, audits: "Sequence[Audit]") -> None:
        """Print the audits of past versions."""
        from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
        from zonal.report.trend import versions_blocks  # noqa: PLC0415

        with printing():
            self._print(list(audits), audits[-1:])
            if self.output is AuditOutput.text:
                print_blocks(Console(), versions_blocks(audits))

    def _print(self, result: object, audits: "Sequence[Audit]") -> None:
        """Print JSON or metrics, if that is the output."""
        from zonal.report.machine.json_form import to_json  # noqa: PLC0415
        from zonal.report.machine.prometheus import metrics_text  # noqa: PLC0415

        if self.output is AuditOutput.json:
            typer.echo(to_json(result))
        elif self.output is AuditOutput.prometheus:
            typer.echo(metrics_text(audits), nl=False)

    def _call(self, audit: "Audit") -> None:
        """Call the webhook; a failure is a warning, and the alert keeps its exit code."""
        from zonal.report.machine.json_form import to_json  # noqa: PLC0415
        from zonal.report.machine.webhook import post  # noqa: PLC0415

        try:
            post(self.webhook or "", to_json(audit))
        except ZonalError as error:
            warn(str(error))


@dataclass(frozen=True)
class _Run:
    """The options of the command line that hold for all tables of a file."""

    seed: int
    hide_literals: bool
    metadata_only: bool

    def of(self, table: "TableConfig") -> "Auditing":
        """Return how to audit a table: values are hidden, or rows not read, if the file or the command line says so."""
        how = table.auditing(seed=self.seed)
        look = how.sampling.look and not self.metadata_only
        hide = how.display.hide_literals or self.hide_literals
        return replace(how, sampling=replace(how.sampling, look=look), display=replace(how.display, hide_literals=hide))


def _many(config: Path, database: str | None, outputs: _Outputs, run: _Run, *, no_database: bool) -> int:
    """Audit all tables of a file; warn of one that can't be audited, and go on with the others."""
    from zonal.cli.config import read_config  # noqa: PLC0415
    from zonal.report.machine.webhook import check_url  # noqa: PLC0415

    settings = read_config(config)
    if outputs.webhook is None and settings.webhook is not None:
        check_url(settings.webhook)
        outputs = replace(outputs, webhook=settings.webhook)
    audited: list[tuple[Audit, CommandOptions]] = []
    failed: list[tuple[str, str]] = []
    with kept_in(database or settings.database, none=no_database) as kept:
        for each in settings.tables:
            views = tuple(f"{name}=…" for name in each.views)
            job = _Job(each.table, each.logs(), run.of(each), each.catalog, dict(each.storage_options), views)
            try:
                with naming_flags(False):
                    audited.append((_only(job.run(kept), [audit for audit, _ in audited]), job.given))
            except ZonalError as error:
                failed.append((each.table, str(error)))
                warn(f"{quoted(each.table, limit=200)}: {error}")
        return outputs.many(audited, failed, kept)


def _only(audit: "Audit", others: "Sequence[Audit]") -> "Audit":
    """Refuse a table that was audited under another name."""
    if any((other.table.location, other.table.name) == (audit.table.location, audit.table.name) for other in others):
        raise ZonalError(f"It is {quoted(audit.table.name, limit=200)}, which stands there before: leave one out.")
    return audit


def _print_trend(
    table: "Table", kept: "History | None", limit: float, output: AuditOutput, report: Path | None
) -> None:
    from zonal.report.ledger import ledger_blocks  # noqa: PLC0415
    from zonal.report.machine.json_form import to_json  # noqa: PLC0415
    from zonal.report.terminal.blocks import print_blocks  # noqa: PLC0415
    from zonal.report.trend import trend_blocks  # noqa: PLC0415
    from zonal.verbs.trend import trend  # noqa: PLC0415

    if kept is None:
        raise ZonalError("--trend prints what the database has: leave out --no-database.")
    if output is AuditOutput.prometheus:
        raise ZonalError("--trend is printed as text or JSON: leave out --output prometheus.")
    course = trend(table, database=kept)
    with printing():
        if output is AuditOutput.json:
            typer.echo(to_json(course))
        else:
            if course.audits or course.runs:  # else the ledger says that there are none
                print_blocks(Console(), trend_blocks(course.table, course.audits, course.runs, limit))
            print_blocks(Console(), ledger_blocks(course))
    if report is not None:
        from zonal.report.page.blocks import blocks_page  # noqa: PLC0415 - reads the charts' library

        write_report(report, blocks_page(ledger_blocks(course)))
