"""Compare audits of many tables, on a terminal and as a page: those with an alert first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text

from zonal.auditing.audit import Audit
from zonal.history.records import AuditRecord
from zonal.report.command import CommandOptions
from zonal.report.page.audit import remedy_box, verdict_box
from zonal.report.page.frame import Html, Row, described, element, joined, listed, name, page, section, table, text
from zonal.report.sparkline import sparkline
from zonal.report.terminal.audit import audit_facts, audit_notes, known_share, print_audit
from zonal.report.terminal.text import print_line, printable
from zonal.report.wording import clipped, plural, share_text

_LONG = 600
_MOST_POINTS = 30


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


def print_audits(console: Console, overview: Overview) -> None:
    """Print every audit under its table's name, then all of them in a table."""
    for each in overview.audits:
        console.print(Text(printable(clipped(each.table.name)), style="bold underline"), soft_wrap=True)
        print_audit(console, each, overview.given_for(each))
        console.print()
    print_overview(console, overview)


def print_overview(console: Console, overview: Overview) -> None:
    """Print one line per table."""
    print_line(console, overview.sentence, style="bold")
    lines = Table()
    lines.add_column("table", overflow="fold")
    for heading in ("ratio", "bytes read", "anew"):
        lines.add_column(heading, justify="right")
    lines.add_column("so far", overflow="fold")
    for each in overview.ordered:
        shares = map(
            known_share,
            (each.reads.ratio, each.reads.byte_share, None if each.fresh is None else each.fresh.byte_share),
        )
        named = Text(printable(clipped(each.table.name)), style="bold red" if each.judgment.alerts else "")
        marked = Text("ALERT ", style="bold red") + named if each.judgment.alerts else named
        lines.add_row(marked, *shares, overview.course(each))
    console.print(lines)


def overview_page(overview: Overview) -> str:
    """Return a page of many audits: a table of all of them, then each with its verdict and numbers."""
    has_alert = any(each.judgment.alerts for each in overview.audits)
    kind = "verdict bad" if has_alert else "verdict other" if overview.failed else "verdict"
    parts = [
        element("h1", text("Audits of many tables")),
        element("div", element("p", text(overview.sentence)), class_=kind),
        _failed(overview.failed),
        _all(overview),
        *(_one(each, _place(number), overview.given_for(each)) for number, each in enumerate(overview.ordered, 1)),
        element("footer", text("Made by zonal audit. No query was run: statistics tell what must be read.")),
    ]
    return page("zonal audit: many tables", joined(parts))


def _failed(failed: Sequence[tuple[str, str]]) -> Html:
    failures = (element("span", name(table), text(": "), text(error, _LONG)) for table, error in failed)
    lines = listed(failures)
    return section("Tables that can't be audited", lines) if lines else lines


def _all(overview: Overview) -> Html:
    heads = ("table", "alert", "files read of those in matching partitions", "bytes read", "clustered anew", "so far")
    rows = [
        Row(
            element("a", name(each.table.name), href=f"#{_place(number)}"),
            [
                element("span", text("alert"), class_="bad-text") if each.judgment.alerts else text("-"),
                text(known_share(each.reads.ratio)),
                text(share_text(each.reads.byte_share)),
                text("-" if each.fresh is None else share_text(each.fresh.byte_share)),
                text(overview.course(each) or "-"),
            ],
            bool(each.judgment.alerts),
        )
        for number, each in enumerate(overview.ordered, 1)
    ]
    caption = (
        "Those with an alert first; each leads to what to do. The line tells how the ratio went, from audit to audit."
    )
    return section("All tables", table(caption, heads, rows, plain=(heads[1], heads[-1]))) if rows else Html("")


def _place(number: int) -> str:
    """Return the id of a table's section."""
    return f"table-{number}"


def _one(audit: Audit, place: str, given: CommandOptions | None) -> Html:
    return element(
        "section",
        element("h2", name(audit.table.name)),
        verdict_box(audit),
        remedy_box(audit, given),
        described((text(label), text(fact, _LONG)) for label, fact in audit_facts(audit)),
        listed(text(line, _LONG) for line in audit_notes(audit)),
        id=place,
    )
