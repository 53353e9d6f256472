"""What a report consists of, however it is drawn: verdicts, facts, tables, lines and pictures as values.

Each result gives its blocks once; the terminal, pages and notebooks draw them, and escape what they hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from zonal.report.wording import Fact

if TYPE_CHECKING:
    from zonal.auditing.audit import Audit
    from zonal.history.records import AuditRecord, RunRecord
    from zonal.picture.picture import Picture
    from zonal.skipping.depth import Depth
    from zonal.verbs.trend import TrendPoint

Mood = Literal["good", "other", "bad"]


@dataclass(frozen=True)
class Title:
    """A report's heading, of which a terminal has none: its first fact names the table."""

    what: str
    name: str = ""


@dataclass(frozen=True)
class TableHeading:
    """A heading where a report goes on to another table."""

    name: str
    place: str = ""
    """The id by which a page's rows lead to it."""


@dataclass(frozen=True)
class Sentences:
    """A report's verdict: what matters most, first."""

    sentences: Sequence[str]
    mood: Mood = "good"


@dataclass(frozen=True)
class Command:
    """A command to run, after words that introduce it."""

    command: str
    intro: str = ""


@dataclass(frozen=True)
class Tiles:
    """The most important numbers, each with what it counts; on a terminal, facts say them."""

    tiles: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Facts:
    """Sentences, each after its label."""

    facts: Sequence[Fact]
    width: int = 14
    """Characters of the labels on a terminal."""
    heading: str = ""
    drawn: Sequence[str] = ()
    """Labels of facts that only a terminal says: tiles or tables of the report show them elsewhere."""

    @property
    def undrawn(self) -> list[Fact]:
        """Return the facts that nothing else of the report shows."""
        return [fact for fact in self.facts if fact[0] not in self.drawn]


@dataclass(frozen=True)
class Paragraph:
    """A sentence by itself."""

    text: str
    is_code: bool = False
    """Whether it is to be read as code: a condition."""


@dataclass(frozen=True)
class Lines:
    """Sentences under a heading; nothing where there are none."""

    heading: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Remarks:
    """Sentences about a table's rows, which only a terminal has: elsewhere the table says it."""

    lines: Sequence[str]


ColumnKind = Literal["number", "text", "whole", "digits"]
"""`whole` is text that no line breaks, `digits` a number that may be broken anywhere: Iceberg's versions have 19."""


@dataclass(frozen=True)
class Heading:
    """A column of a table."""

    heading: str
    short: str = ""
    """Its heading on a terminal, where room is scarce."""
    kind: ColumnKind = "number"
    on_terminal: bool = True
    """Whether a terminal has room for it."""

    @property
    def is_number(self) -> bool:
        """Tell whether cells are aligned at the right."""
        return self.kind in ("number", "digits")

    @property
    def terse(self) -> str:
        """Return the shorter heading."""
        return self.short or self.heading


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    share: float | None = None
    """Drawn by a page as a bar beside the text, from 0 to `scale`."""
    note: str = ""
    """What a page says below the text."""
    span: tuple[float, float] | None = None
    """The interval of the share, drawn on the bar."""
    scale: float = 1.0


@dataclass(frozen=True)
class TableRow:
    """A row of a table; its name may be untrusted text."""

    name: str
    cells: Sequence[Cell]
    notes: Sequence[str] = ()
    """What a page says below the name."""
    mark: str = ""
    """What makes the row stand out, in a word after its name."""
    mood: Mood = "other"
    """How it stands out; `other` where it doesn't."""
    is_code: bool = False
    place: str = ""
    """The chapter that a page leads to."""


TerminalForm = Literal["table", "lines", "nothing"]
"""How a terminal prints a table: as one, one line per row under the caption, or not at all where facts say it."""


@dataclass(frozen=True)
class TableBlock:
    """A table; nothing where it has no rows."""

    heading: str
    caption: str
    columns: Sequence[Heading]
    rows: Sequence[TableRow]
    remark: str = ""
    """What stands below it."""
    most: int | None = None
    """Rows that a terminal prints; None for all."""
    on_terminal: TerminalForm = "table"


@dataclass(frozen=True)
class Listing:
    """A long table: a page folds it, a notebook leaves it out, and a terminal prints whole lines that can be copied."""

    grid: TableBlock
    summary: str
    lines: Sequence[str] = ()
    """What a terminal prints of it."""


@dataclass(frozen=True)
class FileChart:
    """The files as rectangles: a chart on a page, a drawing in a notebook."""

    picture: "Picture | None"
    heading: str = "The files"
    commits: Sequence[tuple[int, str]] = ()
    """Commits that can be chosen, so that their files stand out: each by its number and its name."""


@dataclass(frozen=True)
class ReadsChart:
    """What each query reads: a chart on a page."""

    picture: "Picture | None"
    heading: str = "What each query reads"


@dataclass(frozen=True)
class DepthChart:
    """How many files lie over each other: a chart on a page of versions, each with its files and depths."""

    versions: "Sequence[tuple[str, int, Sequence[Depth]]]"

    @classmethod
    def of(cls, picture: "Picture | None") -> "DepthChart":
        """Return the chart of the versions that a picture has."""
        drawings = () if picture is None else picture.drawings
        return cls([(drawing.label, drawing.files, drawing.depths) for drawing in drawings])


@dataclass(frozen=True)
class TrendChart:
    """The ratio over time: a chart on a page of an audit and those before it, and the rewrites between them."""

    audit: "Audit"
    audits: "Sequence[AuditRecord]"
    runs: "Sequence[RunRecord]"
    limit: float | None
    """The ratio above which an alert is due."""


@dataclass(frozen=True)
class CommitsChart:
    """Whose files are read: a chart on a page, and its numbers as a table elsewhere."""

    audit: "Audit"
    numbers: TableBlock


@dataclass(frozen=True)
class QueriesChart:
    """What each query of an audit reads, and could read: a chart on a page."""

    audit: "Audit"


@dataclass(frozen=True)
class LedgerChart:
    """What runs rewrote, and what queries read against a fresh layout, over time: a chart on a page."""

    points: "Sequence[TrendPoint]"


@dataclass(frozen=True)
class Colophon:
    """How a page was made."""

    text: str


Block = (
    Title
    | TableHeading
    | Sentences
    | Command
    | Tiles
    | Facts
    | Paragraph
    | Lines
    | Remarks
    | TableBlock
    | Listing
    | FileChart
    | ReadsChart
    | DepthChart
    | TrendChart
    | CommitsChart
    | QueriesChart
    | LedgerChart
    | Colophon
)
