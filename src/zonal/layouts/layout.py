"""The layout of a table, `zorder(ts, payload_id)` with its options, as text, as JSON and as a value."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from zonal.errors import LayoutError, ZonalError, in_python, option, quoted, suggestion
from zonal.values.sizes import format_size, parse_size

Curve = Literal["zorder", "hilbert", "linear"]
CURVES: tuple[str, ...] = get_args(Curve)
Encodings = Literal["plain", "modern"]
"""Encodings that readers must know: those of Parquet 1.0, or also the DELTA encodings of 2.0 and RLE of booleans."""
ENCODINGS: tuple[str, ...] = get_args(Encodings)
TREE = "tree"
KINDS: tuple[str, ...] = (*CURVES, TREE)

MAX_COLUMNS = 8
MAX_TREE_COLUMNS = 32
MAX_TREE_TEXT = 1024**2
CURVE_COLUMNS = 4
"""Columns of a tree that order the rows within a leaf."""
MIN_BITS, MAX_BITS = 4, 32
ADVISED_COLUMNS = 4
DEFAULT_FILE_BYTES = 128 * 1024**2
DEFAULT_ROW_GROUP_ROWS = 131_072
JSON_VERSION = 1


@dataclass(frozen=True)
class Layout:
    """A clustering layout: it knows names and options only, and is bound to a schema where it is used.

    `Layout.parse(str(layout)) == layout` and `Layout.from_json(layout.to_json()) == layout`.

    >>> Layout.parse("zorder(ts, payload_id, file_size=256MiB)")
    Layout('zorder(ts, payload_id, file_size=256MiB)')
    """

    kind: str
    columns: tuple[str, ...]
    bits: int | None = None
    """Bits per column in the key; None takes what fits (see `bits_per_column`)."""
    target_file_bytes: int | None = None
    """Size of a file that was asked for; None: it follows from the table's size."""
    row_group_rows: int = DEFAULT_ROW_GROUP_ROWS
    bloom_columns: tuple[str, ...] = ()
    salt: int | None = None
    """Seed that spreads the rows of a heavy value over its whole share of the key space; None leaves them together."""
    tree: str | None = None
    """The cuts of a tree as `zonal.layouts.tree` writes them; they refer to `columns` by number."""
    fitted_file_bytes: int | None = field(default=None, compare=False)
    """Size of a file that suits the table, where none was asked for: recorded, but no part of what the layout is."""
    encodings: Encodings | None = field(default=None, compare=False)
    """Encodings of new files, where they aren't those of the table's format; as little a part of the layout."""

    def __post_init__(self) -> None:
        for name in ("columns", "bloom_columns"):
            value = getattr(self, name)
            if not isinstance(value, Iterable):
                raise LayoutError(f"{option(name, value)} is not a sequence of column names.")
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        if problems := list(self._problems()):
            raise LayoutError(" ".join(problems))

    @classmethod
    def parse(cls, text: str) -> "Layout":
        """Read the text form; all its mistakes are reported in one error."""
        return _Parser(text).layout()

    @classmethod
    def from_json(cls, text: str) -> "Layout":
        """Read what `to_json` wrote; a later version, an unknown field or a wrong id is an error, not a guess."""
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LayoutError(f"The stored layout is not JSON: {error}") from None
        if not isinstance(stored, dict) or "version" not in stored:
            raise LayoutError("The stored layout is not a JSON object with a version.")
        if (version := stored.pop("version")) != JSON_VERSION:
            raise LayoutError(
                f"The stored layout has version {quoted(str(version))}; this zonal reads version {JSON_VERSION}. "
                "Update zonal."
            )
        stored_id = stored.pop("id", None)
        layout = _from_options(stored)
        if stored_id != layout.id:
            raise LayoutError(
                f"The stored layout {layout.short} has the id {quoted(str(stored_id))} instead of {layout.id}."
            )
        return layout

    def to_json(self) -> str:
        """Write the compact JSON form, with `version` and `id`."""
        return _dumps({"version": JSON_VERSION, "id": self.id} | self._options())

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of the content: equal layouts have equal ids, on every machine."""
        options = {name: value for name, value in self._options().items() if name not in _RECORDED_ONLY}
        return hashlib.sha256(_dumps(options).encode()).hexdigest()[:12]

    @property
    def file_bytes(self) -> int:
        """Size of a file: the one that was asked for, else the one that suits the table, else 128 MiB."""
        return self.target_file_bytes or self.fitted_file_bytes or DEFAULT_FILE_BYTES

    @property
    def bits_per_column(self) -> int:
        """Bits that each column gets in the key.

        16 bits tell 65,536 shares of the rows apart, more than there are quantiles; one column alone, and a linear
        order, whose first columns decide nearly everything, get up to 32.
        """
        if self.bits is not None:
            return self.bits
        columns = len(self.curve_columns)
        most = 32 if self.kind == "linear" or columns == 1 else 16
        return min(most, 64 // columns)

    @property
    def curve_columns(self) -> tuple[str, ...]:
        """Columns that the curve runs through: all of them, or in a tree the first ones, which order rows in a leaf."""
        return self.columns[:CURVE_COLUMNS] if self.kind == TREE else self.columns

    @property
    def short(self) -> str:
        """The text form for people: a tree shows its number of leaves instead of its cuts.

        >>> Layout("tree", ("ts", "payload_id"), tree='{"leaves":214}').short
        'tree(ts, payload_id; 214 leaves)'
        """
        if self.tree is None:
            return str(self)
        words, options = self._words(without="tree")
        return f"{self.kind}({', '.join([*words, *options])}{_leaves_in(self.tree)})"

    def advice(self) -> tuple[str, ...]:
        """Return warnings about choices in this layout that work badly in practice; empty where there are none."""
        if (count := len(self.columns)) <= ADVISED_COLUMNS or self.kind == TREE:
            return ()
        return (
            f"{self.kind} over {count} columns skips little on each of them: with n files a column is cut into about "
            f"n^(1/{count}) ranges. Keep the {ADVISED_COLUMNS} columns that queries filter most.",
        )

    def changes_to(self, other: "Layout") -> "tuple[Change, ...]":
        """List what differs in `other`, and what each difference means for files that have this layout.

        >>> [str(change) for change in Layout("zorder", ("a",)).changes_to(Layout("zorder", ("a", "b")))]
        ["columns: ('a',) -> ('a', 'b') (new keys)"]
        """
        return tuple(
            Change(each.name, before, after, _EFFECTS[each.name])
            for each in fields(self)
            if each.compare and (before := getattr(self, each.name)) != (after := getattr(other, each.name))
        )

    def _options(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("tree", "target_file_bytes", *_RECORDED_ONLY):
            if values[name] is None:
                del values[name]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def _problems(self) -> Iterator[str]:
        if self.kind not in KINDS:
            yield f"Unknown layout {quoted(str(self.kind))}. {suggestion(str(self.kind), KINDS)}"
        if not self.columns:
            yield f"A layout needs at least one column, as in {self.kind}(ts, payload_id)."
        most, best = (MAX_TREE_COLUMNS, "") if self.kind == TREE else (MAX_COLUMNS, ", and 2 to 4 work best")
        if len(self.columns) > most:
            yield f"{len(self.columns)} columns are too many: a layout takes up to {most}{best}."
        for what, names in (("the layout", self.columns), ("bloom", self.bloom_columns)):
            yield from _name_problems(what, names)
        if self.encodings is not None and self.encodings not in ENCODINGS:
            yield f"Unknown encodings {quoted(str(self.encodings))}. {suggestion(str(self.encodings), ENCODINGS)}"
        yield from self._tree_problems()
        yield from self._number_problems()

    def _tree_problems(self) -> Iterator[str]:
        if self.kind != TREE:
            if self.tree is not None:
                yield f"Cuts belong to a tree, not to {quoted(str(self.kind))}: leave them out."
        elif not isinstance(self.tree, str) or not self.tree:
            yield "A tree has cuts that are learned from queries: it can't be made of columns alone."
        elif len(self.tree) > MAX_TREE_TEXT:
            yield f"The cuts of the tree have {len(self.tree):,} characters, and {MAX_TREE_TEXT:,} are the most."

    def _number_problems(self) -> Iterator[str]:
        if self.bits is not None:
            columns = min(max(len(self.curve_columns), 1), MAX_COLUMNS)
            words = 1 if self.kind == TREE else 2
            most = min(MAX_BITS, words * (64 // columns))
            if not _is_int(self.bits) or not MIN_BITS <= self.bits <= MAX_BITS:
                yield f"bits={self.bits} is not between {MIN_BITS} and {MAX_BITS}."
            elif self.bits > most:
                yield (
                    f"{columns} columns of {self.bits} bits don't fit into {words} 64-bit words of the key: "
                    f"use at most bits={most}, or fewer columns."
                )
        for name in ("target_file_bytes", "fitted_file_bytes", "row_group_rows"):
            value = getattr(self, name)
            is_open = value is None and name != "row_group_rows"
            if not is_open and (not _is_int(value) or not 1 <= value < 2**63):
                yield f"{_PRINTED.get(name, name)}={value} is not a positive whole number."
        if self.salt is not None and (not _is_int(self.salt) or not 0 <= self.salt < 2**63):
            yield f"salt={self.salt} is not a whole number from 0 to 2^63 - 1."

    def __str__(self) -> str:
        words, options = self._words()
        return f"{self.kind}({', '.join([*words, *options])})"

    def _words(self, *, without: str = "") -> tuple[list[str], list[str]]:
        """Return the columns and the options of the text form."""
        options = []
        for each in fields(self)[2:]:
            value = getattr(self, each.name)
            if each.name != "fitted_file_bytes" and value != each.default and each.name != without:
                if each.name == "target_file_bytes":
                    value = format_size(value)
                elif each.name == "tree":
                    value = _quote(value)
                elif isinstance(value, tuple):
                    value = f"[{', '.join(_quote(name) for name in value)}]"
                options.append(f"{_PRINTED.get(each.name, each.name)}={value}")
        return [_quote(column) for column in self.columns], options

    def __repr__(self) -> str:
        return f"Layout({self.short!r})"


@dataclass(frozen=True)
class Change:
    """One difference between two layouts."""

    what: str
    before: object
    after: object
    effect: Literal["new keys", "new sizes", "new filters"]
    """`new keys`: files of the two layouts don't share one order; the others keep the order of the rows."""

    def __str__(self) -> str:
        if self.what == "tree":
            return f"tree: other cuts ({self.effect})"
        return f"{self.what}: {self.before} -> {self.after} ({self.effect})"


_EFFECTS: Mapping[str, Literal["new keys", "new sizes", "new filters"]] = {
    "kind": "new keys",
    "columns": "new keys",
    "bits": "new keys",
    "salt": "new keys",
    "tree": "new keys",
    "target_file_bytes": "new sizes",
    "row_group_rows": "new sizes",
    "bloom_columns": "new filters",
}
_PRINTED = {"target_file_bytes": "file_size", "bloom_columns": "bloom", "tree": "cuts"}
_RECORDED_ONLY = tuple(each.name for each in fields(Layout) if not each.compare)
_FIELDS = {
    _PRINTED.get(each.name, each.name): each.name for each in fields(Layout)[2:] if each.name != "fitted_file_bytes"
}


def most_bits(columns: int) -> int:
    """Return the most bits per column: each of the key's two words holds the same bits of every column.

    >>> [most_bits(columns) for columns in range(1, 9)]
    [32, 32, 32, 32, 24, 20, 18, 16]
    """
    return min(MAX_BITS, 2 * (64 // columns))


def _leaves_in(tree: str) -> str:
    """Return the number of leaves that the cuts declare, as text, without parsing the cuts."""
    match = re.match(r'\{"leaves":(\d{1,6})\b', tree)
    return "" if match is None else f"; {match[1]} {'leaf' if match[1] == '1' else 'leaves'}"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _name_problems(what: str, names: Iterable[object]) -> Iterator[str]:
    seen: set[object] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            yield f"{name!r} is not a column name."
        elif name in seen:
            yield f"Column {quoted(name)} is named twice in {what}: name it once."
        seen.add(name)


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _from_options(options: Mapping[str, Any]) -> Layout:
    known = {each.name for each in fields(Layout)}
    if unknown := set(options) - known:
        name = min(unknown)
        raise LayoutError(f"Unknown field {quoted(name)} in a stored layout. {suggestion(name, sorted(known))}")
    if missing := {"kind", "columns"} - set(options):
        raise LayoutError(f"The stored layout has no {' and no '.join(sorted(missing))}.")
    for name in ("columns", "bloom_columns"):
        if not isinstance(options.get(name, []), list):
            raise LayoutError(f"{name} of the stored layout is not a list.")
    return Layout(**options)


# --- the text form -------------------------------------------------------------------------------------------------

_BARE = re.compile(r"[^\s,()\[\]=\"`]+")
_TOKEN = re.compile(
    rf"""\s*(?:(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)|(?P<bare>{_BARE.pattern})|(?P<mark>.))""", re.DOTALL
)


def _quote(name: str) -> str:
    return name if _BARE.fullmatch(name) else '"' + name.replace('"', '""') + '"'


class _Parser:
    """Recursive descent over `kind(column, …, option=value, option=[name, …])`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        for match in _TOKEN.finditer(text.rstrip()):
            group = str(match.lastgroup)
            token = match[group]
            if group == "quoted":
                token = token[1:-1].replace(token[0] * 2, token[0])
            self.tokens.append((group, token))
        self.next = 0

    def layout(self) -> Layout:
        kind = self.name("a layout such as zorder")
        self.mark("(")
        columns: list[str] = []
        options: dict[str, Any] = {}
        while not self.accept(")"):
            if columns or options:
                self.mark(",")
            word = self.name("a column")
            if self.accept("="):
                options |= self.option(word, options)
            elif options:
                raise self.error(f"column {quoted(word)} stands behind an option")
            else:
                columns.append(word)
        if self.next != len(self.tokens):
            raise self.error("it goes on behind the closing parenthesis")
        return Layout(kind, tuple(columns), **options)

    def option(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        field = _FIELDS.get(name)
        if field is None:
            raise LayoutError(f"Unknown option {quoted(name)} in {quoted(self.text)}. {suggestion(name, _FIELDS)}")
        if field in given:
            raise self.error(f"option {name} stands twice")
        if field == "bloom_columns":
            return {field: tuple(self.names())}
        value = self.name(f"a value for {name}")
        if field in ("tree", "encodings"):
            return {field: value}
        if field == "target_file_bytes":
            try:
                return {field: parse_size(value)}
            except ZonalError as error:
                raise LayoutError(f"{name} in {quoted(self.text)}: {error}") from None
        if not re.fullmatch(r"\d{1,19}", value, re.ASCII):
            raise self.error(f"{name}={quoted(value)} is not a whole number")
        return {field: int(value)}

    def names(self) -> Iterator[str]:
        self.mark("[")
        while True:
            yield self.name("a column")
            if self.accept("]"):
                return
            self.mark(",")

    def name(self, what: str) -> str:
        if self.next < len(self.tokens) and self.tokens[self.next][0] != "mark":
            self.next += 1
            return self.tokens[self.next - 1][1]
        raise self.error(f"{what} is missing {self.place()}")

    def accept(self, mark: str) -> bool:
        if self.next < len(self.tokens) and self.tokens[self.next] == ("mark", mark):
            self.next += 1
            return True
        return False

    def mark(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.error(f"'{mark}' is missing {self.place()}")

    def place(self) -> str:
        return f"before {quoted(self.tokens[self.next][1])}" if self.next < len(self.tokens) else "at the end"

    def error(self, reason: str) -> LayoutError:
        example = "zorder(ts, payload_id)"
        written = in_python(example) or option("layout", example)  # with the quotes that a shell needs
        return LayoutError(f"Can't read the layout {quoted(self.text)}: {reason}. Write it as {written}.")


def short_text(layout: str) -> str:
    """Return a layout's text without the cuts of a tree; text that is already short stays as it is.

    >>> short_text("zorder(ts, id)"), short_text("tree(ts; 214 leaves)")
    ('zorder(ts, id)', 'tree(ts; 214 leaves)')
    """
    try:
        return Layout.parse(layout).short
    except LayoutError:
        return layout
