"""Conditions as text: errors for people, deep nesting, long lists, and names as they are written."""

import contextlib
from collections.abc import Callable
from datetime import date, datetime

import pytest

from support.conditions import NO, X, where
from support.work import calls_in
from zonal.errors import PredicateError
from zonal.predicates.expressions import And, Compare, In, Or, Unknown
from zonal.sql.where import parse_where


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: where("x = 1", "sprak"), "Unknown SQL dialect 'sprak'. Did you mean 'spark'?"),
        (lambda: where("x = 1", zone="Mars/Olympus"), "Unknown time zone 'Mars/Olympus'"),
        (lambda: parse_where("x = 1", now=datetime(2024, 1, 1)), "no time zone"),
        (lambda: where(""), "empty"),
        (lambda: where("  -- nothing"), "empty"),
        (lambda: where("x = 5 and"), "at line 1, column 9, near 'and'"),
        (lambda: where("x = 5 ORDER BY y"), "unexpected token at line 1"),
        (lambda: where("x = 5,\n y = 6"), "unexpected token"),
        (lambda: where("x = 1; DROP TABLE t"), "several statements"),
        (lambda: where("SELECT 1"), "can't be read"),
        (lambda: where("x = 'abc"), "quote"),
        (lambda: where("x = \0"), "zero bytes"),
        (lambda: where("".join(map(chr, range(1, 256)))), "can't be split"),
        (lambda: where("x" * 3_000_000), "3,000,000 characters"),
        (lambda: where("x > date_add(current_date, 7)", "bigquery"), "can't be read as bigquery SQL"),
    ],
)
def test_errors_speak_to_people(call, message):
    with pytest.raises(PredicateError) as error:
        call()
    assert message in str(error.value)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "(" * n + "x = 1" + ")" * n,
        lambda n: "NOT (" * n + "x = 1" + ")" * n,
        lambda n: "NOT " * n + "x = 1",
        lambda n: "- " * n + "1 = x",
        lambda n: "(x = 1 OR (x = 2 AND " * n + "x = 3" + "))" * n,
        lambda n: "f(" * n + "x" + ") = 1" + ")" * (n - 1),
        lambda n: "CASE WHEN " * n + "x" + " THEN 1 END" * n + " = 1",
        lambda n: "x IN (SELECT y FROM u WHERE " * n + "x = 1" + ")" * n,
        lambda n: "x" + "[1]" * n + " = 1",
        lambda n: "x" + "::int" * n + " = 1",
        lambda n: "1" + " + 1" * n + " = x",
        lambda n: "x" + " IS TRUE" * n,
        lambda n: "(x" + " IS NOT TRUE" * n + ")",
        lambda n: "x" + ".y" * n + " = 1",
        lambda n: "INTERVAL " * n + "'1' DAY = x",
    ],
)
def test_deep_nesting_is_answered_or_refused(make: Callable[[int], str]):
    assert where(make(10)) != NO
    with contextlib.suppress(PredicateError):
        assert where(make(2000)) != NO


@pytest.mark.parametrize(
    ("dialect", "text", "reason"),
    [
        ("spark", "date_format(x, 'yyyy-MM') = '1996-12'", "the function date_format"),
        ("duckdb", "strftime(x, '%Y') = '1996'", "the function strftime"),
        ("postgres", "To_Char(x, 'YYYY') = '1996'", "the function to_char"),
        ("spark", "unix_timestamp(x) > 0", "the function unix_timestamp"),
        ("snowflake", "WHERE iff(x, 1, 2) = 1", "the function iff"),
        ("duckdb", "x::VARCHAR LIKE '1996-12%'", "a pattern for a cast"),
    ],
)
def test_what_can_not_be_used_is_named_as_it_is_written(dialect, text, reason):
    assert where(text, dialect) == Unknown(reason, (X,))


@pytest.mark.parametrize("dialect", [None, "duckdb", "redshift", "hive"])
@pytest.mark.parametrize("literal", ["X'61'", "x'61'", "B'01'"])
def test_a_binary_literal_that_sqlglot_does_not_know_is_one_word(dialect, literal):
    """DuckDB before 2.0 reads X'61' as text, later versions as bytes."""
    assert where(f"x = {literal}", dialect) == Unknown("a binary literal", (X,))
    assert where(f"x NOT BETWEEN {literal} AND NULL", dialect) == Unknown("a binary literal", (X,))
    assert where(f"x > DATE'2024-01-31' AND x <> {literal}", dialect) == And(
        (Compare(X, ">", date(2024, 1, 31)), Unknown("a binary literal", (X,)))
    )


def test_long_lists_and_chains_take_linear_time():
    def listed(count: int) -> int:
        return calls_in(lambda: where(f"x IN ({', '.join(map(str, range(count)))})"))

    assert where(f"x IN ({', '.join(map(str, range(10_000)))})") == In(X, tuple(range(10_000)))
    assert listed(10_000) < 5 * listed(2_500)
    chain = where(" OR ".join(["x = 1"] * 20_000))
    assert isinstance(chain, Or)
    assert len(chain.parts) == 20_000
    assert where("x = '" + "a" * 1_000_000 + "'") == Compare(X, "=", "a" * 1_000_000)
