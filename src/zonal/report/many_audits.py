"""Audits of many tables as blocks of a report: those with an alert first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from zonal.auditing.audit import Audit
from zonal.history.records import AuditRecord
from zonal.report.audit import audit_blocks, verdict_blocks
from zonal.report.audit_wording import audit_facts, audit_notes
from zonal.report.blocks import (
    Block,
    Cell,
    Colophon,
    Facts,
    Heading,
    Lines,
    Sentences,
    TableBlock,
    TableHeading,
    TableRow,
    Title,
)
from zonal.report.command import CommandOptions
from zonal.report.sparkline import sparkline
from zonal.report.wording import known_share, plural

_MOST_POINTS = 30
_COLUMNS = (
    Heading("table", kind="text"),
    Heading("files read of those in matching partitions", "ratio"),
    Heading("bytes read"),
    Heading("clustered anew", "anew"),
    Heading("so far", kind="text"),
)


@dataclass(frozen=True)
class Overview:
    """Audits of many tables, and the tables that can't be audited."""

    audits: Sequence[Audit]
    past: Mapping[str, Sequence[AuditRecord]] = field(default_factory=dict)
    """By location, a table's audits so far, oldest first; this one may be among them."""
    failed: Sequence[tuple[str, str]] = ()
    """Tables as they were named, with what went wrong."""
    given: Sequence[CommandOptions] = ()
    """How each of the audited tables and its logs were named, if that is known."""

    def given_for(self, audit: Audit) -> CommandOptions | None:
        """Return how a table was named, for the command to run."""
        pairs = zip(self.audits, self.given, strict=False)
        return next((given for each, given in pairs if each is audit), None)

    @property
    def values(self) -> list[object]:
        """Return the audits, then what failed, for JSON."""
        return [*self.audits, *({"table": table, "error": error} for table, error in self.failed)]

    @property
    def ordered(self) -> list[Audit]:
        """Return those with an alert first, then by their ratio."""
        return sorted(
            self.audits, key=lambda each: (not each.judgment.alerts, -(each.reads.ratio or 0.0), each.table.name)
        )

    @property
    def sentence(self) -> str:
        """Say how many tables raise an alert, and how many can't be audited."""
        alarmed = sum(bool(each.judgment.alerts) for each in self.audits)
        raise_ = "raises" if 1 in (alarmed, len(self.audits)) else "raise"
        sentence = f"{alarmed:,} of {plural(len(self.audits), 'table')} {raise_} an alert"
        return sentence + (f"; {plural(len(self.failed), 'table')} can't be audited." if self.failed else ".")

    def course(self, audit: Audit) -> str:
        """Draw a table's ratio over time; empty where there is only one audit."""
        ratios = [each.ratio for each in self.past.get(audit.table.location, ()) if each.audited < audit.made.audited]
        return sparkline([*ratios, audit.reads.ratio][-_MOST_POINTS:]) if ratios else ""


def printed_blocks(overview: Overview) -> Iterator[Block]:
    """Yield every audit under its table's name, then all of them in a table, which stays in sight on a terminal."""
    for each in overview.audits:
        yield TableHeading(each.table.name)
        yield from audit_blocks(each, given=overview.given_for(each))
    yield from summary_blocks(overview)


def overview_blocks(overview: Overview) -> Iterator[Block]:
    """Yield a table of all audits, then each with its verdict and facts."""
    yield from summary_blocks(overview)
    for number, each in enumerate(overview.ordered, 1):
        yield TableHeading(each.table.name, _place(number))
        yield from verdict_blocks(each, overview.given_for(each))
        yield Facts(list(audit_facts(each)), 16)
        yield Lines("", list(audit_notes(each)))
    yield Colophon("Made by zonal audit. No query was run: statistics tell what must be read.")


def summary_blocks(overview: Overview) -> Iterator[Block]:
    """Yield how many tables raise an alert, those that can't be audited, and one row per table."""
    has_alert = any(each.judgment.alerts for each in overview.audits)
    yield Title("Audits of many tables")
    yield Sentences([overview.sentence], "bad" if has_alert else "other" if overview.failed else "good")
    yield Lines("Tables that can't be audited", [f"{table}: {error}" for table, error in overview.failed])
    yield TableBlock(
        "All tables",
        "Those with an alert first; each leads to what to do. The line tells how the ratio went, from audit to audit.",
        _COLUMNS,
        [_row(overview, each, number) for number, each in enumerate(overview.ordered, 1)],
    )


def _row(overview: Overview, audit: Audit, number: int) -> TableRow:
    shares = audit.reads.ratio, audit.reads.byte_share, None if audit.fresh is None else audit.fresh.byte_share
    cells = [*(Cell(known_share(share)) for share in shares), Cell(overview.course(audit) or "-")]
    has_alert = bool(audit.judgment.alerts)
    mark = "ALERT" if has_alert else ""
    return TableRow(audit.table.name, cells, (), mark, "bad" if has_alert else "other", place=_place(number))


def _place(number: int) -> str:
    """Return the id of a table's chapter."""
    return f"table-{number}"
