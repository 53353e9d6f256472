"""SQL text to predicates: the WHERE clause of a statement in any dialect that sqlglot reads.

The law: a predicate is true for every row for which the SQL is, in any engine of the dialect, and perhaps for more.
What can't be followed, or what engines do differently, becomes `Unknown` with its reason. Nothing is ever executed.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import ParseError

from zonal.errors import PredicateError, quoted, suggestion
from zonal.predicates.calendar import zone_of
from zonal.predicates.conditions import join, read_condition
from zonal.predicates.literals import describe
from zonal.predicates.terms import Context, Source
from zonal.predicates.tree import (
    Constant,
    Predicate,
    Unknown,
)
from zonal.predicates.values import Session

_LONGEST = 2_000_000
_MOST_TOKENS = 500_000
_DEEPEST = 400
"""Open brackets, NOTs and the like that may stand inside each other."""
_SHALLOW = 10
"""Up to here the caller's own stack does."""
_FRAMES, _STACK_BYTES = 40_000, 512 * 1024**2
_ROOM = threading.Lock()
"""The recursion limit is the whole process's: one deep statement at a time raises it, and puts it back."""


def parse_where(
    text: str, *, dialect: str | None = None, now: datetime | None = None, timezone: str = "UTC"
) -> Predicate:
    """Read a condition as a predicate; it is true for every row for which the SQL is, and perhaps for more.

    `now` is what current_timestamp means (an aware datetime; the time of the call), `timezone` the session's zone.

    >>> parse_where("year(ts) = 2024")
    Compare(term=Call(name='year', column=Column(name='ts', quoted=False), argument=''), op='=', value=2024)
    """
    read = _prepare(text, "condition", dialect, now, timezone)
    return _with_room(read, lambda: read_condition(_parse(read), False, Context(read.session)))


def parse_query(
    sql: str,
    *,
    dialect: str | None = None,
    now: datetime | None = None,
    timezone: str = "UTC",
    table: str | None = None,
) -> Predicate:
    """Read what a SELECT asks of one of its tables; a row that the query needs satisfies the predicate.

    `table` names it where the query reads several; conditions on the others are `Unknown`. Where the table is read more
    than once, the predicate is true for the rows that any of the reads needs.

    >>> parse_query("SELECT * FROM events AS e WHERE e.id = 7")
    Compare(term=Column(name='id', quoted=False), op='=', value=7)
    """
    read = _prepare(sql, "query", dialect, now, timezone)
    return _with_room(read, lambda: _queried(_parse(read), read.session, table))


def _queried(statement: exp.Expr, session: Session, table: str | None) -> Predicate:
    return join([_read(node, session) for node in _reads(statement, table)], is_and=False)


def _with_room(read: "_Text", work: Callable[[], Predicate]) -> Predicate:
    """Run on a thread with a large stack where the SQL is nested deeply: sqlglot calls itself for every bracket."""
    if read.depth <= _SHALLOW:
        return _guarded(work)
    found: list[Predicate | BaseException] = []

    def run() -> None:
        try:
            found.append(_guarded(work))
        except BaseException as error:
            found.append(error)

    with _ROOM:
        limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
        sys.setrecursionlimit(max(limit, _FRAMES))
        try:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _guarded(work: Callable[[], Predicate]) -> Predicate:
    try:
        return work()
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> PredicateError:
    return PredicateError("The SQL is nested too deeply. Write it with fewer parentheses and subqueries.")


@dataclass(frozen=True)
class _Text:
    """SQL cut into words, and how it is to be read."""

    sql: str
    kind: str
    reader: Dialect
    tokens: list[Token]
    session: Session
    depth: int


def _prepare(sql: str, kind: str, dialect: str | None, now: datetime | None, zone: str) -> _Text:
    """Tokenize, and refuse what would take too long or too deep a stack."""
    reader = Dialect.get_or_raise(_dialect(dialect))
    tokens = _tokens(sql, reader)
    session = Session(_dialect(dialect), _moment(now), zone_of(zone), _doubtful(sql, tokens, reader))
    if kind == "condition" and tokens[0].token_type == TokenType.WHERE:
        tokens = tokens[1:]
    starts = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
    if kind == "query" and tokens[0].token_type not in starts:
        raise PredicateError(f"Only SELECT statements have a WHERE clause to read, not {quoted(tokens[0].text)}.")
    return _Text(sql, kind, reader, tokens, session, _depth(tokens))


def _parse(read: _Text) -> exp.Expr:
    """Parse one statement or condition."""
    parser = read.reader.parser()
    try:
        if read.kind == "condition":
            found = parser.parse_into(exp.Condition, read.tokens, read.sql)
        else:
            found = parser.parse(read.tokens, read.sql)
    except RecursionError:
        raise _too_deep() from None
    except ParseError as error:
        raise _unreadable(error, read.kind) from None
    except Exception:  # sqlglot's parsers fail in many ways on arguments that they don't expect
        raise PredicateError(f"The {read.kind} can't be read as {read.session.dialect or 'standard'} SQL.") from None
    node = found[0] if len(found) == 1 else None
    if node is None or isinstance(node, exp.Command) or (read.kind == "query" and not isinstance(node, exp.Query)):
        raise PredicateError(f"There is no {read.kind} to read in {quoted(read.sql)}.")
    return node


def _dialect(name: str | None) -> str:
    known = [dialect.value for dialect in Dialects if dialect.value]
    folded = (name or "").strip().lower()
    if folded and folded not in known:
        raise PredicateError(f"Unknown SQL dialect {quoted(name or '')}. {suggestion(folded, known)}")
    return folded


def _moment(now: datetime | None) -> datetime:
    if now is not None and now.utcoffset() is None:
        raise PredicateError(f"The time {now} has no time zone. Give `now` one, such as datetime.now(timezone.utc).")
    return now or datetime.now(timezone.utc)


def _tokens(sql: str, reader: Dialect) -> list[Token]:
    if len(sql) > _LONGEST:
        raise PredicateError(f"The SQL has {len(sql):,} characters; at most {_LONGEST:,} are read.")
    if "\0" in sql:
        raise PredicateError("The SQL has zero bytes in it. Is it text?")
    try:
        tokens = reader.tokenize(sql)
    except Exception:  # whatever the tokenizer stumbles over
        raise PredicateError(
            f"The SQL can't be split into words: {quoted(sql)}. Look for a quote or comment that isn't closed."
        ) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise PredicateError("The SQL is empty.")
    if len(tokens) > _MOST_TOKENS:
        raise PredicateError(f"The SQL has {len(tokens):,} words; at most {_MOST_TOKENS:,} are read.")
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise PredicateError("The SQL has several statements. Give one.")
    if _depth(tokens) > _DEEPEST:
        raise _too_deep()
    return tokens


def _depth(tokens: Sequence[Token]) -> int:
    """Return how deep a recursive parser may have to go: open brackets, and prefix operators in a row."""
    opening = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
    closing = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
    prefix = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL, TokenType.LT}
    depth = deepest = run = chain = 0
    before = None
    for token in tokens:
        kind = token.token_type
        depth += (kind in opening) - (kind in closing)
        run = run + 1 if kind in prefix else 0
        if kind == TokenType.L_BRACKET and before == TokenType.R_BRACKET:
            chain += 1
        elif kind in (TokenType.COMMA, TokenType.AND, TokenType.OR):
            chain = 0
        deepest = max(deepest, depth + run + chain)
        before = kind
    return deepest


def _doubtful(sql: str, tokens: Sequence[Token], reader: Dialect) -> frozenset[str]:
    """Return the strings with escapes other than the few that all dialects with backslashes share."""
    if "\\" not in sql or "\\" not in reader.tokenizer_class.STRING_ESCAPES:
        return frozenset()
    texts = (token for token in tokens if token.token_type in (TokenType.STRING, TokenType.NATIONAL_STRING))
    return frozenset(token.text for token in texts if not _is_clear(sql[token.start : token.end + 1]))


def _is_clear(source: str) -> bool:
    pieces = source.replace("\\\\", "").split("\\")[1:]
    return all(piece[:1] in ("n", "t", "r", "'", '"') for piece in pieces)


def _unreadable(error: ParseError, kind: str) -> PredicateError:
    detail = error.errors[0] if error.errors else {}
    text = str(detail.get("description") or "").partition("<class")[0].strip().rstrip(".")
    text = text.removeprefix("Invalid expression / ")
    text = "something is missing" if not text or text.startswith("Required") else text[:1].lower() + text[1:200]
    where = f" at line {detail['line']}, column {detail['col']}" if detail.get("line") else ""
    near = f", near {quoted(str(detail['highlight']))}" if detail.get("highlight") else ""
    return PredicateError(f"The {kind} can't be read: {text}{where}{near}.")


def _reads(statement: exp.Expr, table: str | None) -> list[exp.Table]:
    """Return where the statement reads the table; a `PredicateError` if it isn't clear which one is meant."""
    clauses: dict[int, dict[str, int]] = {}
    found = [node for node in statement.find_all(exp.Table) if not _is_cte(node, clauses)]
    names = list(dict.fromkeys(".".join(_path(node)) for node in found))
    if not found:
        raise PredicateError("The query reads no table.")
    if table is None:
        if len({name.casefold() for name in names}) > 1:
            shown = ", ".join(quoted(name) for name in names[:8])
            raise PredicateError(f"The query reads several tables. Name one of them: {shown}.")
        return found
    wanted = [part.strip('`"[]').casefold() for part in table.split(".")]
    same = [node for node in found if _is_same([part.casefold() for part in _path(node)], wanted)]
    same = same or [node for node in found if node.alias.casefold() == table.casefold()]
    if not same:
        raise PredicateError(f"The query doesn't read a table {quoted(table)}. {suggestion(table, names)}")
    return same


def _is_same(path: list[str], wanted: list[str]) -> bool:
    shared = min(len(path), len(wanted))
    return path[-shared:] == wanted[-shared:]


def _path(node: exp.Table) -> tuple[str, ...]:
    if not isinstance(node.this, exp.Identifier | exp.Dot):
        return (describe(node.this).removeprefix("the function "),)
    return tuple(part.name for part in node.parts)


def _is_cte(node: exp.Table, known: "dict[int, dict[str, int]]") -> bool:
    """Tell whether a name is that of a WITH clause which it can see: one before it, or around it if recursive.

    `known` remembers the names of each clause, and the first place of each.
    """
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    child: exp.Expr = node
    parent = node.parent
    while parent is not None:
        clause = parent if isinstance(parent, exp.With) else parent.args.get("with_")
        if clause is not None and clause is not child:
            if id(clause) not in known:
                pairs = [(cte.alias.casefold(), place) for place, cte in enumerate(clause.expressions)]
                known[id(clause)] = dict(reversed(pairs))
            place = known[id(clause)].get(node.name.casefold())
            is_inside = parent is clause and not clause.args.get("recursive")
            if place is not None and (not is_inside or place < (child.index or 0)):
                return True
        child, parent = parent, parent.parent
    return False


def _read(node: exp.Table, session: Session) -> Predicate:
    """Return what one SELECT asks of one table of its FROM clause."""
    select = node.find_ancestor(exp.Select)
    where = select.args.get("where") if select else None
    if select is None or where is None:
        return Constant(True)
    joins = select.args.get("joins") or []
    places = [select.args.get("from_"), *joins]
    place = next((i for i, item in enumerate(places) if item is not None and item.this is node), None)
    if place is None or not _is_plain_read(node, select):
        return Unknown("a table that the WHERE clause doesn't filter directly")
    if _is_optional(place, joins) or any(column.args.get("join_mark") for column in where.find_all(exp.Column)):
        return Unknown("a table on a side of a join that also returns rows without a match")
    others = [item.this for i, item in enumerate(places) if item is not None and i != place]
    others += select.args.get("laterals") or []
    return read_condition(where.this, False, Context(session, _source(node, others, select, session)))


def _is_plain_read(node: exp.Table, select: exp.Select) -> bool:
    """Tell whether WHERE sees the table's rows and columns as they are: not pivoted, renamed or matched before."""
    known = {"this", "db", "catalog", "alias", "version", "when", "hints", "only"}
    is_plain = not any(value and name not in known for name, value in node.args.items())
    return is_plain and not (node.alias_column_names or select.args.get("connect") or select.args.get("match"))


def _is_optional(place: int, joins: list[exp.Join]) -> bool:
    """Tell whether a row that WHERE refuses may still change the result: by turning up as a null, or as no match."""
    sides = [(join.side or ("FULL" if join.kind.upper() == "OUTER" else "")).upper() for join in joins]
    own = joins[place - 1] if place else None
    is_joined = own is None or own.kind.upper() in ("", "INNER", "CROSS", "OUTER")
    is_nullable = own is not None and sides[place - 1] not in ("", "RIGHT")
    return not is_joined or is_nullable or any(side in ("RIGHT", "FULL") for side in sides[place:])


def _source(node: exp.Table, others: list[exp.Expr], select: exp.Select, session: Session) -> Source:
    elsewhere = frozenset(name for other in others for name in _qualifiers(other))
    aliases = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    return Source(
        frozenset(_qualifiers(node)) - (elsewhere if not node.alias else elsewhere - {(node.alias.casefold(),)}),
        elsewhere - ({(node.alias.casefold(),)} if node.alias else set()),
        is_alone=not others,
        aliases=frozenset(aliases if session.dialect == "clickhouse" else ()),
    )


def _qualifiers(node: exp.Expr) -> Iterator[tuple[str, ...]]:
    if node.alias:
        yield (node.alias.casefold(),)
    if isinstance(node, exp.Table):
        path = tuple(part.casefold() for part in _path(node))
        yield from (path[start:] for start in range(len(path)))
