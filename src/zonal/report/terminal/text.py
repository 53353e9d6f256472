"""Print paragraphs, facts and lists on a terminal; names are escaped, and never read as markup."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from zonal.predicates.wording import EVERYTHING
from zonal.report.wrap import wrapped


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph as it is, never as markup; on a terminal, lines end between words."""
    start = len(text) - len(text.lstrip(" ·"))
    console.print(Text(paragraph(console, text, start), style=style), soft_wrap=True)


def print_whole(console: Console, text: str, style: str = "") -> None:
    """Print a line that is to be copied, such as a command or a path: it is never cut."""
    console.print(Text(printable(text), style=style), soft_wrap=True)


def print_fact(console: Console, label: str, value: str, width: int = 14) -> None:
    """Print a paragraph after its label."""
    text = paragraph(console, f"{'':<{width}}{value}", width)
    console.print(Text(f"{printable(label):<{width}}", style="bold") + Text(text[width:]), soft_wrap=True)


def paragraph(console: Console, text: str, hang: int = 0) -> str:
    """Wrap a text for a terminal; other outputs, which programs may read, get one line."""
    shown = printable(text)
    return "\n".join(wrapped(shown, console.width, hang=hang)) if console.is_terminal else shown


def print_list(console: Console, heading: str, lines: Iterable[str]) -> None:
    """Print lines under a heading, the first 20; nothing where there are none."""
    lines = list(lines)
    if lines:
        print_line(console, heading, "bold")
        for line in lines[:20]:
            print_line(console, f"· {line}")
        if len(lines) > 20:
            console.print(f"· and {len(lines) - 20} more")


def query_text(condition: str) -> str:
    """Return a query's condition, or words for a query without a filter.

    >>> query_text("x = 1"), query_text("TRUE")
    ('x = 1', 'everything: it has no filter')
    """
    return EVERYTHING if condition == "TRUE" else condition


def printable(text: str) -> str:
    """Escape control characters: a name may hold some that move the cursor or change colors."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
