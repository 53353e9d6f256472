"""Splitting of SQL text into statements: semicolons in strings, names and comments don't split.

The text is read in blocks, so that a log of any size takes little memory. A quote or comment that isn't closed costs
only its own statement: reading resumes after the next semicolon that ends a line.
"""

import re
from collections.abc import Callable, Iterator

BACKSLASH = frozenset(
    {"athena", "bigquery", "clickhouse", "databricks", "doris", "hive", "mysql", "redshift"}
    | {"snowflake", "spark", "spark2", "starrocks"}
)
"""Dialects in whose strings a backslash escapes a quote."""
_HASH = frozenset({"bigquery", "clickhouse", "doris", "mysql", "singlestore", "starrocks"})
"""Dialects in which # begins a comment."""
_BLOCK = 1 << 16
_LONGEST = 1 << 22
"""The most characters of a statement that are kept; the parser accepts fewer."""
_LONGEST_QUOTE, _LONGEST_TAGGED = 1 << 21, 1 << 16
_MOST_QUOTES = 300_000
"""The most strings, names and comments of a statement before it is given up; the parser accepts fewer tokens."""
_QUOTES = frozenset({"'", '"', "`", "$", "/*"})

_MARK = re.compile(r"[;'\"`#$]|--|/\*")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_]\w{0,62})?\$")
_LEAD = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
_ENDS_LINE = re.compile(r";[ \t\r]*(?=\n)")
_ESCAPES = re.compile(r"\\.|'", re.DOTALL)
_GUESSED = re.compile(r"\\'(?![\s,;)]|\Z)|\\\\|'", re.DOTALL)
"""In an unknown dialect, a quote after a backslash is escaped if the text goes on."""


def split_statements(read: Callable[[int], str], *, dialect: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each statement that `read(characters)` gives, without its semicolon.

    Without a dialect, each backslash before a quote is judged by what follows it.
    """
    scan, line, is_rest = _Scan(dialect), 1, False
    while not scan.is_done:
        end, is_open = scan.statement_end()
        if end is None and scan.wants_more:
            scan.feed(read)
            continue
        scan.trouble += 1 if is_open else -(scan.trouble > 0)
        is_cut = end is None and not is_open and not scan.is_last
        if end is None:
            end = scan.resume() if is_open else len(scan.text)
        lead = _LEAD.match(scan.text, scan.place, end)
        start = lead.end() if lead else scan.place
        piece = scan.text[start:end].removesuffix(";").rstrip()
        if piece and not is_rest:
            yield line + scan.text.count("\n", scan.place, start), piece
        line += scan.text.count("\n", scan.place, end)
        is_rest = is_cut
        scan.place = end


class _Scan:
    """A window of the log's text, and the place up to which it was scanned."""

    def __init__(self, dialect: str | None) -> None:
        self.dialect = dialect
        self.text, self.place, self.size = "", 0, _BLOCK
        self.is_last = self.is_given_up = False
        self.absent: dict[str, tuple[int, int]] = {}
        """Ranges known to have no such closing mark, so that those of open quotes are not searched again and again."""
        self.trouble = 0
        """How many quotes were left open recently."""

    @property
    def wants_more(self) -> bool:
        return not (self.is_last or self.is_given_up) and len(self.text) - self.place < _LONGEST

    @property
    def is_done(self) -> bool:
        return self.is_last and self.place >= len(self.text)

    def feed(self, read: Callable[[int], str]) -> None:
        """Append a block; as blocks grow, a long statement is scanned again only a few times."""
        block = read(self.size)
        self.absent = {mark: (a - self.place, b - self.place) for mark, (a, b) in self.absent.items() if b > self.place}
        self.text, self.is_last = self.text[self.place :] + block, not block
        self.place, self.size = 0, max(_BLOCK, min(len(self.text), _LONGEST))

    def statement_end(self) -> tuple[int | None, bool]:
        """Return the place after the semicolon that ends the statement, or None; and whether a quote is left open."""
        place, quotes, self.is_given_up = self.place, 0, False
        while mark := _MARK.search(self.text, place):
            quotes += mark[0] != "--"
            if quotes > _MOST_QUOTES:
                self.is_given_up = True
                return None, True
            if mark[0] == ";":
                return mark.end(), False
            after = self._after_mark(mark)
            if after is None:
                return None, mark[0] in _QUOTES
            place = after
        return None, False

    def resume(self) -> int:
        """Return where to resume after a statement with an open quote: where a semicolon ends a line.

        The more of them there were, the farther on: text that is no SQL doesn't cost a scan per line.
        """
        match = _ENDS_LINE.search(self.text, self.place + 4 ** min(self.trouble, 11) - 4)
        return len(self.text) if match is None else match.end()

    def _after_mark(self, mark: re.Match[str]) -> int | None:
        """Return the place after a quoted text or comment; None if it isn't closed."""
        opening, start = mark[0], mark.end()
        if opening == "--" or (opening == "#" and self.dialect in _HASH):
            return self._after("\n", start)
        if opening == "/*":
            return self._after("*/", start)
        if opening == "'" and (self.dialect is None or self.dialect in BACKSLASH):
            return self._after_escapes(start)
        if opening == "$":
            tag = _DOLLAR.match(self.text, mark.start())
            return start if tag is None else self._after(tag[0], tag.end())
        return start if opening == "#" else self._after(opening, start)

    def _after(self, wanted: str, start: int) -> int | None:
        """Return the place after a closing mark; a doubled quote closes and opens again, to the same effect."""
        limit = start + (_LONGEST_TAGGED if len(wanted) > 2 else _LONGEST_QUOTE)
        first, until = self.absent.get(wanted, (0, 0))
        found = self.text.find(wanted, max(start, until - len(wanted)) if start >= first else start, limit)
        if found < 0 and len(wanted) <= 2:
            self.absent[wanted] = start, min(limit, len(self.text))
        return None if found < 0 else found + len(wanted)

    def _after_escapes(self, start: int) -> int | None:
        escapes = _GUESSED if self.dialect is None else _ESCAPES
        for piece in escapes.finditer(self.text, start, start + _LONGEST_QUOTE):
            if piece[0] == "'":
                return piece.end()
        return None
