"""Parse SQL text within bounds of length and depth, with readable errors."""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import ParseError

from zonal.errors import PredicateError, quoted, suggestion
from zonal.predicates.calendar import zone_of
from zonal.predicates.scalars import Session
from zonal.sql.unusable import with_spellings

_LONGEST = 2_000_000
_MOST_TOKENS = 500_000
_DEEPEST = 400
"""The deepest nesting of brackets, NOTs and the like."""
_SHALLOW = 10
"""Up to this depth the caller's own stack is large enough."""
_FRAMES, _STACK_BYTES = 40_000, 512 * 1024**2
_ROOM = threading.Lock()
"""The recursion limit is the whole process's: one deep statement at a time raises it, and puts it back."""
_Found = TypeVar("_Found")


def with_room(depth: int, work: Callable[[], _Found]) -> _Found:
    """Run on a thread with a large stack where the SQL is nested deeply: sqlglot recurses for every bracket."""
    if depth <= _SHALLOW:
        return _guarded(work)
    outcome: list[_Found | BaseException] = []

    def run() -> None:
        try:
            outcome.append(_guarded(work))
        except BaseException as error:
            outcome.append(error)

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
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _guarded(work: Callable[[], _Found]) -> _Found:
    try:
        return work()
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> PredicateError:
    return PredicateError("The SQL is nested too deeply. Write it with fewer parentheses and subqueries.")


@dataclass(frozen=True)
class Text:
    """Tokenized SQL, and how it is to be read."""

    sql: str
    kind: str
    reader: Dialect
    tokens: list[Token]
    session: Session
    depth: int


def prepare(sql: str, kind: str, dialect: str | None, now: datetime | None, zone: str) -> Text:
    """Tokenize, and refuse what would take too long or too deep a stack."""
    reader = Dialect.get_or_raise(known_dialect(dialect))
    tokens = _tokens(sql, reader)
    session = Session(known_dialect(dialect), _moment(now), zone_of(zone), _doubtful(sql, tokens, reader))
    if kind == "condition" and tokens[0].token_type == TokenType.WHERE:
        tokens = tokens[1:]
    return Text(sql, kind, reader, tokens, session, _depth(tokens))


def parse_condition(read: Text) -> exp.Expr:
    """Parse one condition."""
    node = _parsed(read)
    if node is None or isinstance(node, exp.Command):
        raise PredicateError(f"There is no condition to read in {quoted(read.sql)}.")
    return node


def parse_statement(read: Text) -> exp.Expr | None:
    """Parse a statement of any kind; None if it is one that sqlglot only passes through, which reads no table."""
    for colon, name in pairwise(read.tokens):
        if colon.token_type == TokenType.COLON and name.token_type == TokenType.FROM and name.start == colon.end + 1:
            name.token_type = TokenType.VAR  # the parameter :from
    first = read.tokens[0].token_type
    if first in read.reader.tokenizer_class.COMMANDS:
        return None
    logger = logging.getLogger("sqlglot")
    logger.addFilter(_is_wanted)  # it warns of statements that it passes through
    try:
        node = _parsed(read)
    finally:
        logger.removeFilter(_is_wanted)
    if isinstance(node, exp.Command):
        return None
    if node is None or not (
        isinstance(node, exp.Query | exp.DML) or first in read.reader.parser_class.STATEMENT_PARSERS
    ):
        raise PredicateError(f"There is no statement to read in {quoted(read.sql)}.")
    return node


def unloaded_query(read: Text) -> str | None:
    """Return the query of an UNLOAD, which sqlglot doesn't read: as text in Redshift, in brackets in Athena."""
    first = read.tokens[0]
    if first.text.upper() != "UNLOAD":
        return None
    rest = read.sql[first.end + 1 :]
    tokens = _tokens(rest, read.reader)
    if len(tokens) > 1 and tokens[1].token_type == TokenType.STRING:
        return tokens[1].text.replace("\\'", "'")
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if not depth:
            return rest[tokens[0].end + 1 : token.start]
    return None


def _is_wanted(record: logging.LogRecord) -> bool:
    return "unsupported syntax" not in record.getMessage()


def _parsed(read: Text) -> exp.Expr | None:
    parser = read.reader.parser()
    try:
        if read.kind == "condition":
            nodes = parser.parse_into(exp.Condition, read.tokens, read.sql)
        else:
            nodes = parser.parse(read.tokens, read.sql)
    except RecursionError:
        raise _too_deep() from None
    except ParseError as error:
        raise _unreadable(error, read.kind) from None
    except Exception:  # sqlglot's parsers fail in many ways on arguments that they don't expect
        raise PredicateError(f"The {read.kind} can't be read as {read.session.dialect or 'standard'} SQL.") from None
    return with_spellings(nodes[0], read.sql) if len(nodes) == 1 and nodes[0] is not None else None


def known_dialect(name: str | None) -> str:
    """Return the dialect's name as sqlglot writes it, or raise an error that suggests one."""
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
    return _with_prefixes(tokens)


def _with_prefixes(tokens: list[Token]) -> list[Token]:
    """Join X'61' where sqlglot doesn't know the literal: it would read BETWEEN X'61' AND y as BETWEEN X AND '61'."""
    alone: list[Token] = []
    for token in tokens:
        before = alone[-1] if alone else None
        is_prefixed = before is not None and before.token_type == TokenType.VAR and before.end + 1 == token.start
        if before is not None and is_prefixed and token.token_type == TokenType.STRING and len(before.text) == 1:
            token.token_type = TokenType.BIT_STRING  # its value isn't read
            alone.pop()
        alone.append(token)
    return alone


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
