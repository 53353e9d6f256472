"""Guess the dialect of statements, by parsing them in each."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from sqlglot import exp

from zonal.errors import PredicateError
from zonal.predicates.expressions import Unknown, leaves
from zonal.predicates.scalars import Session
from zonal.sql.conditions import read_condition
from zonal.sql.statement import parse_statement, prepare, with_room

_CANDIDATES = ("spark", "databricks", "trino", "snowflake", "bigquery", "duckdb", "postgres", "redshift", "athena")
_OTHERS = ("mysql", "tsql", "clickhouse", "oracle", "hive")
_MOST_STATEMENTS = 40
_LONGEST = 20_000
_NOW = datetime(2024, 5, 15, tzinfo=timezone.utc)
_CLUES: dict[str, str] = {
    r"`": "spark databricks bigquery mysql hive clickhouse",
    r"lateral view": "spark databricks hive",
    r"date_(add|sub)\([^'(]{0,99}(\(\))?,\s*-?\d+\)": "spark databricks hive",
    r"[=<>]\s*\"": "spark databricks bigquery mysql hive",
    r"current_date\(\)|current_timestamp\(\)": "spark databricks snowflake bigquery mysql",
    r"flatten\s*\(\s*input": "snowflake",
    r"dateadd\(": "snowflake redshift databricks tsql",
    r"\bqualify\b": "snowflake bigquery databricks duckdb redshift",
    r"\w:\w": "snowflake databricks",
    r"::": "snowflake postgres redshift duckdb databricks clickhouse",
    r"_(ntz|ltz)\b": "snowflake databricks",
    r"cross join unnest\s*\([^)]{0,99}\)\s*(with ordinality )?(as )?\w+\s*\(": "trino athena",
    r"date_(add|diff|trunc)\('\w+',\s*(-?\d+|\w+),": "trino athena",
    r"from_iso8601|from_unixtime\(|approx_distinct\(|\bat_timezone\(": "trino athena",
    r"safe_cast\(|(timestamp|date|datetime)_(sub|add|trunc)\(.{0,99}\b(interval|day|month|hour|week)\b": "bigquery",
    r"\*\s*except\s*\(": "bigquery databricks",
    r"[=<>(,]\s*@\w": "bigquery tsql",
    r"\*\s*exclude\b": "duckdb snowflake redshift",
    r"read_(parquet|csv|json)|^\s*from\b|interval \d+ \w+": "duckdb",
    r"->>|distinct on\b": "postgres duckdb",
    r"[=<>(,]\s*\$\d": "postgres duckdb",
    r"interval '\d+ \w+'": "postgres redshift duckdb snowflake",
    r"= any\s*\(|%\(\w+\)s|~\*|\breturning\b|join lateral\b": "postgres",
    r"\bupdate\b.{0,99}\bfrom\b|\bdelete from \S+ using\b": "postgres redshift",
    r"getdate\(\)": "redshift tsql",
    r"\bunload\b|\bdistkey\b|\bsortkey\b": "redshift",
    r"\btop \d+\b|\[\w+\]\.\[": "tsql",
    r"\bprewhere\b|\btoDate(Time)?\(|\bfinal\b": "clickhouse",
    r"\brownum\b|\bsysdate\b|to_date\('[^']{0,40}',\s*'YYYY": "oracle",
}
"""Syntax by the dialects that have it: sqlglot reads more in each than its engine does, so reading alone won't tell."""


def guess_dialect(sqls: Sequence[str]) -> str | None:
    """Return the dialect that reads most of the statements, has most of their syntax and understands their conditions.

    "" is standard SQL, which wins where no dialect reads more; None if none reads any. Up to 40 statements are tried.
    """
    sample = _sample(sqls)
    scores = {dialect: _score(sample, dialect) for dialect in ("", *_CANDIDATES, *_OTHERS)}
    best = max(scores.values())
    return next(dialect for dialect, score in scores.items() if score == best) if best[0] else None


def _sample(sqls: Sequence[str]) -> list[str]:
    """Return different statements, evenly spread over all; long ones are left out."""
    known = list(dict.fromkeys(sql for sql in sqls if 0 < len(sql) <= _LONGEST))
    step = max(1, -(-len(known) // _MOST_STATEMENTS))
    return known[::step]


def _score(sqls: Sequence[str], dialect: str) -> tuple[int, int, int]:
    """Return how many statements can be read, their clues, and how many of their conditions are understood."""
    read = understood = 0
    clues = [re.compile(clue, re.IGNORECASE | re.ASCII) for clue, names in _CLUES.items() if dialect in names.split()]
    matched_clues = sum(clue.search(sql) is not None for clue in clues for sql in sqls)
    for sql in sqls:
        conditions = _understood(sql, dialect)
        read += conditions is not None
        understood += conditions or 0
    return read, matched_clues, understood


def _understood(sql: str, dialect: str) -> int | None:
    """Return how many conditions are understood, less those that aren't; None if the statement can't be read."""
    try:
        text = prepare(sql, "statement", dialect, _NOW, "UTC")
        return with_room(text.depth, lambda: _balance(parse_statement(text), text.session))
    except PredicateError:
        return None


def _balance(node: exp.Expr | None, session: Session) -> int:
    return sum(1 if _is_known(leaf) else -1 for leaf in _conditions(node, session))


def _conditions(node: exp.Expr | None, session: Session) -> Iterator[object]:
    for clause in node.find_all(exp.Where, exp.Having, exp.Qualify) if node is not None else ():
        yield from leaves(read_condition(clause.this, False, session))


def _is_known(leaf: object) -> bool:
    """Tell whether a condition was understood: text in a collation was, though it can't be compared."""
    return not isinstance(leaf, Unknown) or "collation" in leaf.reason or "ignores case" in leaf.reason
