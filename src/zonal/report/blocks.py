"""What a report consists of, however it is drawn: verdicts, facts, tables, lines and pictures as values.

Each result gives its blocks once; the terminal, pages and notebooks draw them, and escape what they hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from zonal.picture.picture import Picture
from zonal.report.wording import Fact
from zonal.skipping.depth import Depth
from zonal.verbs.trend import TrendPoint

Mood = Literal["good", "other", "bad"]


@dataclass(frozen=True)
class Title:
    """A report's heading, of which a terminal has none: its first fact names the table."""

    what: str
    name: str


@dataclass(frozen=True)
class Sentences:
    """A report's verdict: what matters most, first."""

    sentences: Sequence[str]
    mood: Mood = "good"


@dataclass(frozen=True)
class Facts:
    """Sentences, each after its label."""

    facts: Sequence[Fact]
    width: int = 14
    """Characters of the labels on a terminal."""


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


@dataclass(frozen=True)
class Heading:
    """A column of a table."""

    heading: str
    short: str = ""
    """Its heading on a terminal, where room is scarce."""
    is_number: bool = True

    @property
    def terse(self) -> str:
        """Return the shorter heading."""
        return self.short or self.heading


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    share: float | None = None
    """From 0 to 1: a page draws a bar beside the text."""
    note: str = ""
    """What a page says below the bar."""


@dataclass(frozen=True)
class TableBlock:
    """A table; its rows begin with a name, which may be untrusted text."""

    heading: str
    caption: str
    columns: Sequence[Heading]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    remark: str = ""
    """What stands below it."""
    sentences: Sequence[str] = ()
    """What a terminal prints instead of the table, where it is short."""


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

    picture: Picture | None
    heading: str = "The files"


@dataclass(frozen=True)
class ReadsChart:
    """What each query reads: a chart on a page."""

    picture: Picture | None


@dataclass(frozen=True)
class DepthChart:
    """How many files lie over each other: a chart on a page of versions, each with its files and depths."""

    versions: Sequence[tuple[str, int, Sequence[Depth]]]


@dataclass(frozen=True)
class LedgerChart:
    """What runs rewrote, and what queries read against a fresh layout, over time: a chart on a page."""

    points: Sequence[TrendPoint]


@dataclass(frozen=True)
class Colophon:
    """How a page was made."""

    text: str


Block = (
    Title
    | Sentences
    | Facts
    | Paragraph
    | Lines
    | Remarks
    | TableBlock
    | Listing
    | FileChart
    | ReadsChart
    | DepthChart
    | LedgerChart
    | Colophon
)
