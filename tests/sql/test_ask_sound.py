"""What statements ask of a table: DuckDB judges that the rows which no predicate asks for don't matter."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from zonal.predicates.expressions import And, Call, Column, Constant, In, IsNull, Or, Predicate, StartsWith, Unknown
from zonal.sql.ask import ask
from zonal.sql.conditions import join
from zonal.sql.query import parse_query

COLUMNS = ("id", "a", "b", "s")
TABLES = 12
QUERIES = ["plain", "plain", "plain", "group", "window", "star", "set", "limit", "distinct"]
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"]


def text_of(predicate: Predicate) -> str:
    """Return a predicate as SQL; what is unknown might be true."""
    if isinstance(predicate, And | Or):
        word = " AND " if isinstance(predicate, And) else " OR "
        return "(" + word.join(text_of(part) for part in predicate.parts) + ")"
    if isinstance(predicate, Constant | Unknown):
        return "TRUE" if isinstance(predicate, Unknown) or predicate.value else "FALSE"
    if isinstance(predicate, IsNull):
        return f"{predicate.column.name} IS {'NOT ' * predicate.negated}NULL"
    if isinstance(predicate, StartsWith):
        return f"{'NOT ' * predicate.negated}starts_with({predicate.column.name}, '{predicate.prefix}')"
    term = term_of(predicate.term)
    if isinstance(predicate, In):
        return f"{term} {'NOT ' * predicate.negated}IN ({', '.join(map(literal, predicate.values))})"
    return f"{term} {predicate.op} {literal(predicate.value)}"


def term_of(term: Column | Call) -> str:
    assert isinstance(term, Column) or term.name == "cast", term
    return (
        term.name
        if isinstance(term, Column)
        else f"CAST({term.column.name} AS {term.argument.replace('int32', 'INT')})"
    )


def literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


@dataclass
class Writer:
    """Writes a query; each base table has a name of its own, so that its rows can be taken away alone."""

    draw: Callable[[st.SearchStrategy], object]
    tables: int = 0
    names: int = 0
    clauses: list[tuple[str, str, list[str]]] = field(default_factory=list)

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def relation(self, depth: int) -> tuple[str, str, list[str]]:
        """Return an item of a FROM clause, its alias and its columns."""
        alias = self.name("r")
        kind = self.pick("table", "table", "query", "clause", "again") if depth else "table"
        if kind == "table":
            self.tables += 1
            return f"t{self.tables} AS {alias}", alias, list(COLUMNS)
        if kind == "again" and self.clauses:
            name, _, columns = self.pick(*self.clauses)
            return f"{name} AS {alias}", alias, columns
        text, columns = self.query(depth - 1)
        renamed = [f"n{place}" for place in range(len(columns))] if self.pick(True, False, False) else columns
        suffix = f"({', '.join(renamed)})" if renamed is not columns else ""
        if kind == "query":
            return f"({text}) AS {alias}{suffix}", alias, renamed
        name = self.name("c")
        self.clauses.append((name, f"{name}{suffix} AS ({text})", renamed))
        return f"{name} AS {alias}", alias, renamed

    def condition(self, columns: list[str], depth: int, size: int = 2) -> str:
        one, other = self.pick(*columns), self.pick(*columns)
        number = self.pick(0, 1, 2, 3)
        if size and self.pick(True, False, False):
            left, right = (self.condition(columns, depth, size - 1) for _ in range(2))
            return f"({left} {self.pick('AND', 'AND', 'OR')} {right})"
        if depth and self.pick(True, *[False] * 9):
            text, outputs = self.query(depth - 1)
            inner = self.name("q")
            kind = self.pick("IN", "NOT IN", "EXISTS", "NOT EXISTS", "=")
            if kind == "=":
                return f"{one} = (SELECT max({outputs[0]}) FROM ({text}) AS {inner})"
            if kind.endswith("IN"):
                return f"{one} {kind} (SELECT {outputs[0]} FROM ({text}) AS {inner})"
            output = f"{inner}.{outputs[0]}"
            return f"{kind} (SELECT 1 FROM ({text}) AS {inner} WHERE {output} = {one} AND {output} > {number})"
        return self.pick(
            f"{one} {self.pick('=', '<>', '<', '<=', '>', '>=')} {number}",
            f"{one} IS NULL",
            f"{one} IS NOT NULL",
            f"NOT ({one} > {number})",
            f"{one} IN ({number}, {number + 1})",
            f"{one} NOT IN ({number}, {number + 1})",
            f"{one} BETWEEN {number} AND {number + 1}",
            f"{one} = {other}",
            f"coalesce({one}, {number}) = {number}",
            f"{one} + 1 = {number}",
            f"{one} IS DISTINCT FROM {number}",
            f"({one} = {number}) IS NOT TRUE",
        )

    def source(self, depth: int, joins: Sequence[int] = (0, 0, 0, 1, 1, 2)) -> tuple[str, list[str]]:
        """Return a FROM clause and its columns; a single relation's without qualifiers."""
        text, alias, columns = self.relation(depth)
        count = self.pick(*joins)
        if not count:
            return text, columns
        qualified = [f"{alias}.{column}" for column in columns]
        for _ in range(count):
            more, other, others = self.relation(depth)
            kind = self.pick(*KINDS)
            behind = [f"{other}.{column}" for column in others]
            shared = [column for column in columns if column in others]
            if shared and self.pick(True, False, False):
                text = f"{text} {kind} {more} USING ({shared[0]})"
                qualified += [] if kind in KINDS[4:] else behind
                if qualified.count(shared[0]) == 0 and kind in KINDS[:2]:
                    qualified.append(shared[0])
                return text, qualified
            on = f"{self.pick(*qualified)} = {self.pick(*behind)}"
            if self.pick(True, False):
                on += f" AND {self.condition(qualified + behind, 0, 1)}"
            text = f"{text} {kind} {more} ON {on}"
            if kind not in KINDS[4:]:
                qualified += behind
        return text, qualified

    def query(self, depth: int, kinds: Sequence[str] = QUERIES) -> tuple[str, list[str]]:
        """Return a query and the names of its columns."""
        kind = self.pick(*kinds)
        if kind == "set" and depth:
            return self.combined(depth)
        source, columns = self.source(depth)
        where = f" WHERE {self.condition(columns, depth)}" if self.pick(True, True, False) else ""
        if kind == "star" and all("." not in column for column in columns):
            return f"SELECT * FROM {source}{where}", columns
        chosen = [self.pick(*columns) for _ in range(self.pick(2, 3))]
        names = [f"x{place}" for place in range(len(chosen))]
        if kind == "group":
            having = f" HAVING {self.pick(f'{chosen[0]} > 1', 'count(*) > 1', f'{chosen[0]} = 2 OR count(*) > 2')}"
            keys = self.pick(chosen[0], "1", "x0", f"ROLLUP({chosen[0]})")
            tail = f" GROUP BY {keys}{having if self.pick(True, False) else ''}"
            return f"SELECT {chosen[0]} AS x0, count(*) AS x1, max({chosen[1]}) AS x2 FROM {source}{where}{tail}", [
                "x0",
                "x1",
                "x2",
            ]
        items = [f"{node} AS {name}" for node, name in zip(chosen, names, strict=True)]
        if kind == "window":
            call = self.pick(
                f"count(*) OVER (PARTITION BY {chosen[0]})",
                f"min({chosen[1]}) OVER (PARTITION BY {chosen[0]}, {chosen[1]})",
                "count(*) OVER ()",
                f"rank() OVER (PARTITION BY {chosen[0]} ORDER BY {chosen[1]})",
            )
            tail = f" QUALIFY {call} = 1" if self.pick(True, False, False) else ""
            return f"SELECT {', '.join(items)}, {call} AS w FROM {source}{where}{tail}", [*names, "w"]
        if self.pick(True, False, False):
            items[0] = self.pick(
                f"{chosen[0]} + 1 AS x0", "2 AS x0", f"CAST({chosen[0]} AS INT) AS x0", "NULL::INT AS x0"
            )
        head = "DISTINCT " if kind == "distinct" else ""
        tail = f" ORDER BY {', '.join(names)} LIMIT {self.pick(1, 3)}" if kind == "limit" else ""
        return f"SELECT {head}{', '.join(items)} FROM {source}{where}{tail}", names

    def combined(self, depth: int) -> tuple[str, list[str]]:
        word = self.pick("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT")
        (left, names), (right, others) = self.query(depth - 1), self.query(depth - 1)
        width = min(len(names), len(others))
        narrow = [
            f"SELECT {', '.join(c[:width])} FROM ({q}) AS {self.name('u')}" for q, c in [(left, names), (right, others)]
        ]
        return f"{narrow[0]} {word} {narrow[1]}", names[:width]


@st.composite
def statements(draw: Callable[[st.SearchStrategy], object], kind: str) -> tuple[str, int]:
    writer = Writer(draw)
    if kind == "joins":
        source, columns = writer.source(0, (1, 2))
        conditions = " AND ".join(writer.condition(columns, 0, 1) for _ in range(writer.pick(1, 2)))
        return f"SELECT {', '.join(columns)} FROM {source} WHERE {conditions}", writer.tables
    is_flat = kind == "layers"
    text, columns = writer.query(0, ["group", "group", "window", "window", "limit"]) if is_flat else writer.query(2)
    outer = f"SELECT * FROM ({text}) AS final WHERE {writer.condition(columns, 0 if is_flat else 1)}"
    clauses = ", ".join(clause for _, clause, _ in writer.clauses)
    return f"WITH {clauses} {outer}" if clauses else outer, writer.tables


@pytest.fixture(scope="module")
def judge() -> duckdb.DuckDBPyConnection:
    """Ten tables of the same shape with other rows: small numbers and nulls."""
    connection = duckdb.connect()
    connection.execute("SET disabled_optimizers = 'expression_rewriter'; SET threads = 1; SELECT setseed(0.5)")
    for number in range(1, TABLES + 1):
        a = f"CASE WHEN i % 7 = {number % 7} THEN NULL ELSE (i * {number} + i // 3) % 4 END::INT AS a"
        b = f"CASE WHEN i % 5 = 0 THEN NULL ELSE (i + {number}) % 3 END::INT AS b"
        select = f"SELECT i::INT AS id, {a}, {b}, (i % 2)::INT AS s FROM range(8) r(i)"
        connection.execute(f"CREATE TABLE t{number} AS {select}")
    return connection


def check(judge: duckdb.DuckDBPyConnection, sql: str, tables: int, columns: Sequence[str] | None) -> None:
    """Take the rows away that no predicate asks for, table by table: the result stays."""
    assume(tables <= TABLES)
    note(sql)
    try:
        before = sorted(judge.execute(sql).fetchall(), key=repr)
    except duckdb.Error as error:
        note(str(error))
        assume(False)
    for number in range(1, tables + 1):
        found = ask(sql, [f"t{number}"], dialect="duckdb", columns=columns)
        needed = " OR ".join(text_of(asked.predicate) for asked in found) or "FALSE"
        if found:
            alone = parse_query(sql, dialect="duckdb").predicate(table=f"t{number}", columns=columns)
            assert alone == join([asked.predicate for asked in found], is_and=False)
        note(f"t{number}: {needed}")
        if needed == "TRUE":
            continue
        left = f"(SELECT * FROM t{number} WHERE {needed}) AS"
        after = sorted(judge.execute(sql.replace(f"t{number} AS", left)).fetchall(), key=repr)
        assert after == before, f"t{number} needs more than {needed}"


def check_together(judge: duckdb.DuckDBPyConnection, sql: str, tables: int, columns: Sequence[str] | None) -> None:
    """Let all reads be of one table, and take the rows away from all of them that their joined predicate refuses."""
    sql = re.sub(r"\bt\d+ AS", "t1 AS", sql)
    note(sql)
    try:
        before = sorted(judge.execute(sql).fetchall(), key=repr)
    except duckdb.Error as error:
        note(str(error))
        assume(False)
    assume(tables)
    needed = text_of(parse_query(sql, dialect="duckdb").predicate(columns=columns))
    note(needed)
    after = sorted(judge.execute(sql.replace("t1 AS", f"(SELECT * FROM t1 WHERE {needed}) AS")).fetchall(), key=repr)
    assert after == before, f"t1 needs more than {needed}"


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(statements("joins"), st.sampled_from([None, COLUMNS]))
def test_joins_need_no_other_rows(judge, written, columns) -> None:  # type: ignore[no-untyped-def]
    check(judge, *written, columns)


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(statements("layers"), st.sampled_from([None, COLUMNS]))
def test_groups_windows_and_limits_need_no_other_rows(judge, written, columns) -> None:  # type: ignore[no-untyped-def]
    check(judge, *written, columns)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(statements("nested"), st.sampled_from([None, COLUMNS]))
def test_nested_queries_need_no_other_rows(judge, written, columns) -> None:  # type: ignore[no-untyped-def]
    check(judge, *written, columns)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.one_of(*map(statements, ["joins", "layers", "nested"])), st.sampled_from([None, COLUMNS]))
def test_a_table_that_is_read_often_needs_no_other_rows(judge, written, columns) -> None:  # type: ignore[no-untyped-def]
    check_together(judge, *written, columns)
