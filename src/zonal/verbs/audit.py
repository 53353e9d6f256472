"""`audit`: measure what a log's queries read of a table, whether that has become worse, and which commit did it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from datetime import timezone as zones

from zonal.advising.queries import filter_weights
from zonal.arguments import check_arguments
from zonal.auditing.audit import Audit, Circumstances
from zonal.auditing.blame.commits import Commits, commits_of
from zonal.auditing.drift import Alerts, Drift, drift_of
from zonal.auditing.findings import Earlier, findings, ratio_of
from zonal.auditing.record import audit_record
from zonal.auditing.renames import named_as
from zonal.auditing.savings import saving_of
from zonal.display import Display
from zonal.errors import TableError, ZonalError, option, quoted
from zonal.history.opened import Database, opened
from zonal.history.records import HistoryError
from zonal.history.store import History
from zonal.picture.picture import Picture
from zonal.snapshot import Snapshot, table_names
from zonal.study.audited_version import AuditedVersion, Auditing, audited_version
from zonal.study.drawing import compared, is_wanted
from zonal.study.sampling import Sampling
from zonal.tables.protocol import Table, Versioned, is_versioned
from zonal.tables.registry import read_snapshot, table_of
from zonal.trials.today import current
from zonal.values.progress import Progress, Step, only_notices
from zonal.workload.logs import Queries, workload_of
from zonal.workload.query import Workload

NOT_KEPT = "This audit isn't in the history."
"""How the note of an audit begins that the history couldn't store."""


def audit(
    table: Table | str,
    *,
    queries: Queries,
    at: int | None = None,
    sampling: Sampling | None = None,
    alerts: Alerts | None = None,
    display: Display | None = None,
    database: Database = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Replay the queries of logs on a table's statistics, and compare what they read with what they could.

    An alert is due where the ratio of files read to files in the matching partitions is above a limit and
    clustering could save a tenth of what is read, as far as is known, or where it is worse than the best of the last
    audits. Nothing of the table is changed.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        queries: paths of logs, `Logs`, which say how they are to be read, or a workload.
        at: an older version to audit.
        sampling: how much of the log and of the table to look at, as `Sampling`.
        alerts: when an alert is due, as `Alerts`.
        display: what the result shows, as `Display`; a picture also has the files from before the worst commit.
        database: where audits are kept: a URL, an open `History`, or None for nowhere.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> audit = zonal.audit("events", queries=["queries.sql"])
        >>> round(audit.reads.ratio, 2), [alert.kind for alert in audit.judgment.alerts]
        (0.62, [])
    """
    check_arguments(audit, locals())
    how = Auditing(sampling or Sampling(), alerts or Alerts(), display or Display())
    how.check()
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    auditor = auditor_of(source, queries, how, progress)
    return auditor.now(database) if at is None else auditor.at(at)


def audit_versions(
    table: Table | str,
    *,
    queries: Queries,
    versions: int,
    sampling: Sampling | None = None,
    display: Display | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> tuple[Audit, ...]:
    """Audit the table's last versions with today's queries, oldest first, from metadata alone.

    Arguments:
        table: a path or a name of a Delta or Iceberg table, as for `open_table`, or an open one.
        queries: paths of logs, `Logs`, which say how they are to be read, or a workload.
        versions: how many versions to audit.
        sampling: how much of the log to look at, as `Sampling`.
        display: what the results show, as `Display`; without, no picture is drawn.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        progress: hears each step.

    Example:
        >>> past = zonal.audit_versions("orders", queries=["queries.sql"], versions=2)
        >>> [(audit.table.version, audit.table.files) for audit in past]
        [(2, 3), (3, 4)]
    """
    check_arguments(audit_versions, locals())
    source = table_of(table, catalog=catalog, storage_options=storage_options)
    how = Auditing(sampling or Sampling(), display=display or Display(picture=False))
    how.check()
    return auditor_of(source, queries, how, progress).last(versions)


def auditor_of(table: Table, queries: Queries, how: Auditing, progress: Progress | None = None) -> "Auditor":
    """Read a table's metadata and its logs, once for all versions."""
    report = progress or only_notices
    report(Step("reading the table's metadata"))
    snapshot = read_snapshot(table, report)
    workload = workload_of(queries, table_names(snapshot), snapshot.schema.names, report)
    if not workload.queries:
        why = workload.summary.nobody_asks(hide=how.display.hide_literals)
        raise TableError(f"There is nothing to ask of {quoted(snapshot.name, limit=200)}. {why}")
    return Auditor(table, snapshot, workload, how, report)


@dataclass(frozen=True, eq=False)
class Auditor:
    """A table and its queries, ready to be audited at any version."""

    table: Table
    snapshot: Snapshot
    """The newest version, or the one at which the table was opened."""
    workload: Workload
    how: Auditing
    report: Progress

    def now(self, database: Database = None) -> Audit:
        """Audit the newest version, compare it with the last audits, and add it to them.

        A table that was opened at a version or branch is audited there, and not compared or kept.
        """
        if not len(self.snapshot.files):
            raise TableError(f"{quoted(self.snapshot.name, limit=200)} has no files: there is nothing to audit.")
        is_pinned = is_versioned(self.table) and self.table.pinned
        with opened(None if is_pinned else database) as history:
            past = [] if history is None else history.audits(self.snapshot.location, limit=self.how.alerts.window)
            ratios = [record.ratio for record in past if record.ratio is not None]
            result = self._audit(self.table, self.snapshot, ratios, look=self.how.sampling.look)
            return result if history is None else _remembered(result, history)

    def at(self, version: int) -> Audit:
        """Audit an older version; no audit is compared or kept.

        One with another schema is read under today's column names, from metadata alone.
        """
        pinned = self._versioned().at(version)
        snapshot = pinned.snapshot()
        if not len(snapshot.files):
            raise TableError(f"Version {version} of {quoted(self.snapshot.name, limit=200)} has no files.")
        newest = self.snapshot
        if snapshot.schema.equals(newest.schema) and snapshot.physical == newest.physical:  # names may come again
            return self._audit(pinned, snapshot, [], look=self.how.sampling.look)
        return self._audit(pinned, named_as(snapshot, self.snapshot), [], look=False)

    def last(self, count: int) -> tuple[Audit, ...]:
        """Audit the last versions, oldest first, from metadata alone; versions without files are left out."""
        if count < 1:
            raise ZonalError(f"{option('versions', count)} is not a positive number.")
        chosen = self._versioned().versions()[-count:]
        audits = []
        for number, commit in enumerate(chosen):
            self.report(Step("asking versions", done=number, total=len(chosen)))
            snapshot = self._versioned().at(commit.id).snapshot()
            if len(snapshot.files):
                renamed = named_as(snapshot, self.snapshot)
                audits.append(self._audit(self.table, renamed, [], look=False, blame=False))
        return tuple(audits)

    def _versioned(self) -> Versioned:
        if not is_versioned(self.table):
            raise TableError(f"{quoted(self.snapshot.name, limit=200)} is plain Parquet, which has no versions.")
        return self.table

    def _audit(
        self, table: Table, snapshot: Snapshot, past: Sequence[float], *, look: bool, blame: bool = True
    ) -> Audit:
        began = time.monotonic()
        case = audited_version(table, snapshot, self.workload, self.how, self.report, look=look)
        commits = self._commits(snapshot, case) if blame else Commits()
        drift = self._drift(case, past)
        made = Circumstances(datetime.now(zones.utc), self.how.sampling.seed, case.notes)
        before = self._before(snapshot, commits)
        earlier = _earlier(before, case) if before is not None and commits.culprits else None
        result = findings(
            snapshot, case.asked, case.replayed, case.seen, made, summary=self.workload.summary, commits=commits,
            earlier=earlier, drift=drift, hide=self.how.display.hide_literals,
        )  # fmt: skip
        picture = self._picture(before, snapshot, case) if self._is_drawn(snapshot, blame=blame) else None
        return replace(result, made=replace(made, seconds=time.monotonic() - began), picture=picture)

    def _is_drawn(self, snapshot: Snapshot, *, blame: bool) -> bool:
        """Tell whether to draw; a series of versions gets pictures only on request."""
        return bool(self.how.display.picture) or (blame and is_wanted(self.how.display.picture, snapshot))

    def _drift(self, case: AuditedVersion, past: Sequence[float]) -> Drift:
        saving = saving_of(case.snapshot, case.asked, case.replayed, case.seen.fresh_shares)
        return drift_of(ratio_of(case.replayed, case.asked), past, self.how.alerts, saving)

    def _commits(self, snapshot: Snapshot, case: AuditedVersion) -> Commits:
        if not snapshot.commits:
            return Commits()
        filtered = filter_weights(case.asked)[0]  # a partition column has one value per file, however wide
        weights = {name: weight for name, weight in filtered.items() if name not in snapshot.partitioning}
        return commits_of(snapshot, case.replayed, weights, self._version)

    def _version(self, version: int) -> Snapshot | None:
        """Return a version as it was; None where its metadata is gone."""
        try:
            return self._versioned().at(version).snapshot()
        except TableError:
            return None

    def _picture(self, before: Snapshot | None, snapshot: Snapshot, case: AuditedVersion) -> Picture | None:
        """Draw the table, and beside it the version from before the worst commit, where that is known."""
        keys = () if snapshot.layout is None else snapshot.layout.columns
        return compared(before or snapshot, snapshot, keys, case.asked, hide=self.how.display.hide_literals)

    def _before(self, snapshot: Snapshot, commits: Commits) -> Snapshot | None:
        """Return the last version with files from before the worst commit; None where it isn't known any more.

        Where no commit did harm, a picture still gets the version before one that replaced files.
        """
        replacing = [each for each in commits.told if each.replaced] if self.how.display.picture else []
        worst = next(iter([*commits.culprits, *replacing]), None)
        commit = None if worst is None or worst.since is None else snapshot.commits.get(worst.since)
        while commit is not None and commit.parent is not None:
            older = self._version(commit.parent)
            if older is None or len(older.files):
                return None if older is None else named_as(older, snapshot)
            commit = snapshot.commits.get(commit.parent)
        return None


def _earlier(before: Snapshot, case: AuditedVersion) -> Earlier:
    """Measure what the queries read of an older version."""
    return Earlier(before.version, current(before, case.asked.bounds, case.asked.weights).shares)


def _remembered(result: Audit, history: History) -> Audit:
    """Add an audit to the history; where that fails, it stays an audit, and a note says so."""
    try:
        history.add_audit(audit_record(result))
    except HistoryError as error:
        notes = (*result.made.notes, f"{NOT_KEPT} {error}")
        return replace(result, made=replace(result.made, notes=notes))
    return result
