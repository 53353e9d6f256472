"""What statements ask of a table: hostile text is read or refused with bounded work."""

import contextlib
import random

import pytest

from support.statements import EVENTS, asked, predicates
from support.work import calls_in
from zonal.errors import PredicateError
from zonal.predicates.expressions import Column, Compare


def refuse(sql: str) -> None:
    with pytest.raises(PredicateError):
        asked(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM events WHERE id IN (" + "1234567," * 1_300_000 + "1)",
        "SELECT * FROM events WHERE " + "(" * 10_000 + "id = 1" + ")" * 10_000,
        "SELECT * FROM (" * 10_000 + "events" + ")" * 10_000,
        "SELECT * FROM events WHERE " + "NOT " * 10_000 + "id = 1",
        "WITH " + ", ".join(f"c{i} AS (SELECT 1)" for i in range(1_001)) + " SELECT * FROM events",
        random.Random(0).randbytes(100_000).decode("latin-1"),  # noqa: S311 - a test's
        random.Random(0).randbytes(100_000).decode("latin-1").replace("\0", ""),  # noqa: S311
        "events events",
        "SELECT * FROM events WHERE 'unclosed",
        "SELECT 1 FROM events; SELECT 2 FROM events",
        "",
        "-- events",
    ],
    ids=lambda sql: f"{len(sql)}",
)
def test_hostile_text_is_refused_with_bounded_work(sql: str) -> None:
    assert calls_in(lambda: refuse(sql)) < 2_000_000


def test_statements_that_grow_when_followed_are_refused() -> None:
    names = range(1, 40)  # as many doublings would never end
    twice = ", ".join(f"c{i} AS (SELECT a.* FROM c{i - 1} a JOIN c{i - 1} b ON a.id = b.id)" for i in names)
    refuse(f"WITH c0 AS (SELECT * FROM events), {twice} SELECT * FROM c39 WHERE id = 1")
    double = ", ".join(f"c{i} AS (SELECT id + id AS id FROM c{i - 1})" for i in names)
    refuse(f"WITH c0 AS (SELECT * FROM events), {double} SELECT * FROM c39 WHERE id = 1")


def test_long_chains_of_queries_are_followed() -> None:
    chain = ", ".join(f"c{i} AS (SELECT * FROM c{i - 1})" for i in range(1, 300))
    sql = f"WITH c0 AS (SELECT * FROM events), {chain} SELECT * FROM c299 WHERE id = 1"
    assert predicates(sql) == [Compare(Column("id"), "=", 1)]
    assert predicates(sql, columns=EVENTS) == [Compare(Column("id"), "=", 1)]


def test_random_words_are_read_or_refused() -> None:
    draw = random.Random(1)  # noqa: S311
    words = [
        "SELECT",
        "FROM",
        "events",
        "(",
        ")",
        ",",
        "WHERE",
        "x",
        "=",
        "1",
        "'",
        '"',
        "--",
        "*",
        "WITH",
        "AS",
        "JOIN",
    ]
    words += [
        "ON",
        "UNION",
        "MERGE INTO",
        "USING",
        "{",
        "}",
        "[",
        ":",
        "@",
        "\x01",
        "é",
        "GROUP BY",
        "OVER",
        ".",
        "DELETE",
    ]
    for _ in range(300):
        sql = " ".join(draw.choices(words, k=draw.randint(1, 30)))
        with contextlib.suppress(PredicateError):
            assert isinstance(asked(sql), list)
