"""Workloads: how statements become queries, how they are weighed, and that nothing is lost on the way."""

import io
import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialect, Dialects

from zonal.errors import PredicateError
from zonal.predicates.expressions import (
    And,
    Call,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Or,
    Parameter,
    StartsWith,
    Unknown,
)
from zonal.predicates.wording import describe
from zonal.workload.query import LogError, Workload, is_usable, signature
from zonal.workload.reader import read_workload
from zonal.workload.statements import BACKSLASH, split_statements
from zonal.workload.weights import Weighting, limited


def split(text, dialect=""):
    return [sql for _, sql in split_statements(io.StringIO(text).read, dialect=dialect)]


def records(folder, *rows, name="log.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def asked(workload):
    return {describe(query.predicate): query for query in workload.queries}


# Statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1; select 2;", ["select 1", "select 2"]),
        ("select ';' from t; select 2", ["select ';' from t", "select 2"]),
        ("select 'it''s;' from t", ["select 'it''s;' from t"]),
        ('select ";", `;` from t', ['select ";", `;` from t']),
        ("select 1 -- ; no\n from t", ["select 1 -- ; no\n from t"]),
        ("/* ; */ select 1", ["select 1"]),
        ("select $$ ; $$; select $a$ ; $$ ; $a$", ["select $$ ; $$", "select $a$ ; $$ ; $a$"]),
        (";; -- nothing\n;", []),
        ("", []),
    ],
)
def test_semicolons_split_only_outside_of_strings_names_and_comments(text, expected):
    assert split(text) == expected


def test_a_backslash_escapes_a_quote_in_dialects_that_say_so():
    text = r"select 'it\'s; x' from t; select 2"
    assert split(text, "spark") == [r"select 'it\'s; x' from t", "select 2"]
    assert split(r"select 'c:\'; select 2", "trino") == [r"select 'c:\'", "select 2"]


def test_the_dialects_with_backslashes_are_those_of_sqlglot():
    known = {d.value for d in Dialects if d.value}
    escaping = {name for name in known if "\\" in Dialect.get_or_raise(name).tokenizer_class.STRING_ESCAPES}
    assert escaping == set(BACKSLASH)


def test_an_open_quote_costs_one_statement():
    assert split("select 1;\nselect 'open from t;\nselect 2;\nselect 3") == [
        "select 1",
        "select 'open from t",
        "select 2",
        "select 3",
    ]


def test_statements_know_their_lines():
    text = "-- first\nselect 1;\n\n\nselect\n2;select 3"
    assert list(split_statements(io.StringIO(text).read, dialect="")) == [
        (2, "select 1"),
        (5, "select\n2"),
        (6, "select 3"),
    ]


PIECES = st.lists(st.sampled_from(["a", "';'", '";"', "/*;*/ b", "-- ;\n c", "\n", "1"]), min_size=1, max_size=8)


@given(st.lists(PIECES.map(" ".join).filter(lambda text: text.split() and "a" in text), max_size=6), st.integers(1, 9))
def test_splitting_undoes_joining_whatever_the_blocks_are(statements, size):
    stream = io.StringIO(";\n".join(statement + "\n" for statement in statements))
    found = [sql for _, sql in split_statements(lambda _: stream.read(size), dialect="")]
    assert len(found) == len(statements)
    assert all(sql in statement for sql, statement in zip(found, statements, strict=True))


@pytest.mark.parametrize("junk", ["/* ;\n", "'\\';\n", "$a$;\n", "('\"`", "\0\1;"])
def test_text_that_is_no_sql_takes_bounded_time(junk):
    assert split(junk * 30_000, "spark")


# Text


@pytest.mark.parametrize(
    ("predicate", "shown", "hidden"),
    [
        (Compare(Column("id"), "=", 7), "id = 7", "id = ?"),
        (Compare(Column("ts"), ">=", date(2026, 1, 1)), "ts >= 2026-01-01", "ts >= ?"),
        (Compare(Column("n"), "=", "it's"), "n = 'it''s'", "n = ?"),
        (Compare(Column("a b"), "<", Decimal("1.50")), '"a b" < 1.50', '"a b" < ?'),
        (Compare(Call("year", Column("ts")), "=", 2024), "year(ts) = 2024", "year(ts) = ?"),
        (Compare(Call("date_trunc", Column("ts"), "day"), "=", True), "date_trunc('day', ts) = TRUE", None),
        (In(Column("id"), (1, 2), negated=True), "id NOT IN (1, 2)", "id NOT IN (?, ?)"),
        (In(Column("id"), tuple(range(9))), "id IN (0, 1, 2, 3, 4, … 9 values)", None),
        (StartsWith(Column("n"), "ab"), "n LIKE 'ab%'", "n LIKE ?"),
        (IsNull(Column("n"), negated=True), "n IS NOT NULL", "n IS NOT NULL"),
        (Compare(Column("id"), "=", Parameter("p")), "id = :p", "id = ?"),
        (Compare(Column("x"), "=", b"\x01\xff"), "x = X'01ff'", "x = ?"),
        (Constant(True), "TRUE", "TRUE"),
        (Unknown("the function foo", (Column("a"),)), "something of a: the function foo", "something of a"),
        (
            And((Compare(Column("a"), "=", 1), Or((Compare(Column("b"), "<", 2), IsNull(Column("b")))))),
            "a = 1 AND (b < 2 OR b IS NULL)",
            "a = ? AND (b < ? OR b IS NULL)",
        ),
    ],
)
def test_predicates_are_described_with_and_without_values(predicate, shown, hidden):
    assert describe(predicate) == shown
    assert hidden is None or describe(predicate, hide=True) == hidden


def test_hostile_names_and_values_stay_on_one_short_line():
    nasty = Compare(Column('a"\n\x1b[31m' + "x" * 500), "=", "\x1b]0;\n" + "y" * 500)
    text = describe(And((nasty,) * 100))
    assert text.isprintable()
    assert len(text) < 1000


def test_predicates_deeper_than_the_stack_are_described_and_told_apart():
    deep = Compare(Column("a"), "=", 1)
    for number in range(5000):
        deep = (And if number % 2 else Or)((deep, Compare(Column("b"), "=", number)))
    assert describe(deep).startswith("(")
    assert is_usable(deep)
    assert len(signature(deep)) == 10_001


# Values


def test_a_predicate_is_usable_if_every_alternative_has_a_known_part():
    known, unknown = Compare(Column("a"), "=", 1), Unknown("a function")
    assert is_usable(And((known, unknown)))
    assert not is_usable(Or((known, unknown)))
    assert not is_usable(And((unknown, Constant(True))))
    assert is_usable(Constant(False))


def test_signatures_tell_equal_values_of_other_types_apart():
    assert len({signature(Compare(Column("a"), "=", value)) for value in (1, True, 1.0, Decimal(1), "1")}) == 5


def test_a_workload_of_conditions_has_equal_weights():
    workload = Workload.of(["id = 7", "ts > '2026-01-01' OR name = 'x'"])
    assert [query.weight for query in workload.queries] == [1.0, 1.0]
    assert workload.summary.matched == 2
    with pytest.raises(PredicateError):
        Workload.of(["id ="])


# Weights


@given(st.lists(st.floats(1e-6, 1e12), min_size=1, max_size=40), st.floats(0.01, 1))
def test_no_weight_is_above_the_cap_and_the_order_stays(weights, cap):
    found = limited(weights, cap)
    assert all(0 < after <= before for after, before in zip(found, weights, strict=True))
    assert max(found) <= max(cap, 1 / len(found)) * math.fsum(found) * (1 + 1e-9)
    order = sorted(range(len(weights)), key=weights.__getitem__)
    assert all(found[i] <= found[j] for i, j in pairwise(order))


def test_without_a_cap_weights_stay():
    assert limited([9.0, 1.0], None) == [9.0, 1.0]


def test_weights_are_runs_times_bytes(tmp_path):
    log = records(
        tmp_path,
        *[{"query": "select * from t where a = 1", "bytes": 100}] * 3,
        {"query": "select * from t where a = 2", "bytes": 50, "count": 4},
        {"query": "select * from t where a = 3"},
    )
    found = asked(read_workload([log], tables=["t"], weighting=Weighting(cap=None)))
    assert (found["a = 1"].weight, found["a = 1"].count, found["a = 1"].bytes) == (300, 3, 100)
    assert (found["a = 2"].weight, found["a = 2"].count, found["a = 2"].bytes) == (200, 4, 50)
    assert found["a = 3"].weight == pytest.approx(500 / 7), "the mean stands in for unknown bytes"
    assert found["a = 3"].bytes is None


def test_weights_halve_with_every_half_life(tmp_path):
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rows = [("a = 1", 0), ("a = 1", 20), ("a = 2", 10), ("a = 3", 20), ("a = 4", -9000)]
    log = records(
        tmp_path,
        *[{"sql": f"select * from t where {c}", "time": str(start + timedelta(days=d))} for c, d in rows],
    )
    found = asked(read_workload([log], tables=["t"], weighting=Weighting(10, cap=None)))
    assert [found[f"a = {n}"].weight for n in (1, 2, 3)] == pytest.approx([1.25, 0.5, 1.0])
    assert found["a = 4"].weight > 0
    assert found["a = 1"].last == start + timedelta(days=20)


def test_one_dashboard_does_not_decide_alone(tmp_path):
    rows = [{"sql": "select * from t where a = 0", "count": 10_000}]
    rows += [{"sql": f"select * from t where a = {n}"} for n in range(1, 11)]
    workload = read_workload([records(tmp_path, *rows)], tables=["t"], weighting=Weighting(cap=0.2))
    total = sum(query.weight for query in workload.queries)
    assert workload.queries[0].weight == pytest.approx(0.2 * total)


@pytest.mark.parametrize(
    "options",
    [
        {"weighting": Weighting(cap=0)},
        {"weighting": Weighting(cap=2)},
        {"weighting": Weighting(0)},
        {"tables": []},
        {"tables": "t"},
    ],
)
def test_senseless_options_are_refused(tmp_path, options):
    log = records(tmp_path, {"sql": "select 1"})
    with pytest.raises(LogError):
        read_workload([log], **{"tables": ["t"], **options})


# Reading


def test_every_statement_is_accounted_for(tmp_path):
    log = tmp_path / "log.sql"
    log.write_text(
        "select * from db.t where a = 1;\nselect * from t;\nselect * from other where b = 1;\nset x = 1;\n"
        "selec * form t wher;\nselect * from t where a = 1;\ncreate table u (a int);\nselect 'open"
    )
    workload = read_workload([log], tables=["t"], dialect="spark")
    summary = workload.summary
    assert summary.statements == 8
    assert (summary.matched, summary.other_tables, summary.full_scans) == (3, 3, 1)
    assert summary.unparsable == 2
    assert [example.partition(": ")[0] for example in summary.examples] == ["log.sql:5", "log.sql:8"]
    assert {text: (q.count, q.source) for text, q in asked(workload).items()} == {
        "a = 1": (2, "log.sql:1"),
        "TRUE": (1, "log.sql:2"),
    }


STATEMENTS = st.sampled_from(
    [
        "select * from t where a = 1",
        "select * from t",
        "select * from u",
        "selec from where",
        "",
        "set a = 1",
        "\0",
        "(" * 600,
        "select * from t where a = 1 union all select * from t where b = 2",
        "drop table t",
        "select * from t where f(a)",
    ]
)


@given(st.lists(STATEMENTS, max_size=12))
def test_the_counts_of_the_summary_add_up(tmp_path_factory, statements):
    log = records(tmp_path_factory.mktemp("logs"), {"sql": "select 1"}, *({"sql": text} for text in statements))
    workload = read_workload([log], tables=["t"], dialect="spark")
    summary = workload.summary
    assert summary.statements == len(statements) + 1
    assert summary.statements == summary.unparsable + summary.parsed
    assert summary.parsed == summary.matched + summary.other_tables
    assert summary.full_scans <= summary.matched
    assert sum(query.count for query in workload.queries) >= summary.matched
    assert all(query.weight > 0 for query in workload.queries)


def test_relative_dates_mean_the_time_of_the_run(tmp_path):
    rows = [{"sql": "select * from t where d = current_date", "time": f"2026-01-0{n} 12:34:00"} for n in (1, 2, 2)]
    found = asked(read_workload([records(tmp_path, *rows)], tables=["t"], dialect="spark"))
    assert {text: query.count for text, query in found.items()} == {"d = 2026-01-01": 1, "d = 2026-01-02": 2}


def test_relative_dates_without_a_time_mean_now(tmp_path):
    log = records(tmp_path, {"sql": "select * from t where d = current_date"})
    now = datetime(2025, 5, 5, 12, tzinfo=timezone.utc)
    assert "d = 2025-05-05" in asked(read_workload([log], tables=["t"], dialect="spark", now=now))


def test_comments_that_number_the_runs_do_not_make_other_statements(tmp_path):
    rows = [{"sql": f"/* run {n} */ select * from t where a = 'x -- y' -- {n}"} for n in range(50)]
    workload = read_workload([records(tmp_path, *rows)], tables=["t"], dialect="spark")
    assert [(describe(q.predicate), q.count) for q in workload.queries] == [("a = 'x -- y'", 50)]


def test_views_are_looked_through(tmp_path):
    log = records(tmp_path, {"sql": "select * from v where a = 1"})
    workload = read_workload([log], tables=["t"], dialect="spark", views={"v": "select * from t where b = 2"})
    assert workload.summary.matched == 1


def test_progress_ends_with_all_bytes(tmp_path):
    log = records(tmp_path, *[{"sql": "select * from t"}] * 600)
    seen = []
    read_workload([log], tables=["t"], dialect="", progress=lambda step: seen.append((step.done, step.total)))
    assert seen[-1] == (log.stat().st_size, log.stat().st_size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_view_that_cant_be_read_and_an_unknown_dialect_are_refused_at_once(tmp_path):
    log = records(tmp_path, {"sql": "select * from events where a = 1"})
    with pytest.raises(PredicateError, match="view 'v'"):
        read_workload([log], tables=["events"], dialect="spark", views={"v": "select from where"})
    with pytest.raises(PredicateError, match=r"Unknown SQL dialect 'sparkk'\..*spark"):
        read_workload([log], tables=["events"], dialect="sparkk")


def test_names_that_join_without_an_alias_find_their_table_where_its_columns_are_known(tmp_path):
    log = tmp_path / "log.sql"
    log.write_text("SELECT count(*) FROM t, u WHERE x = 7 AND w = 3 AND t_id = u_id;")
    known = read_workload([log], tables=["t"], dialect="spark", columns=["t_id", "x"])
    (query,) = known.queries
    assert describe(query.predicate).startswith("x = 7")
    assert "w = 3" not in describe(query.predicate)
    (query,) = read_workload([log], tables=["t"], dialect="spark").queries
    assert "x = 7" not in describe(query.predicate)


def test_filters_on_columns_that_the_table_lacks_are_told(tmp_path):
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE xx = 7;" * 3 + "SELECT * FROM t WHERE x = 7; SELECT * FROM t;")
    summary = read_workload([log], tables=["t"], dialect="spark", columns=["t_id", "x"]).summary
    assert (summary.strange, summary.strangers, summary.full_scans) == (3, ("xx",), 4)


def test_entries_before_a_time_are_counted_and_left_out(tmp_path):
    (tmp_path / "log.jsonl").write_text(
        '{"query": "SELECT * FROM t WHERE a = 1", "start_time": "2026-01-01T00:00:00Z"}\n'
        '{"query": "SELECT * FROM t WHERE a = 2", "start_time": "2026-01-08T00:00:00Z"}\n'
        '{"query": "SELECT * FROM t WHERE a = 3", "start_time": null}\n'
    )
    since = datetime(2026, 1, 8, tzinfo=timezone.utc)
    found = read_workload([tmp_path / "log.jsonl"], tables=["t"], since=since)
    assert [query.predicate.value for query in found.queries] == [2], "the time itself counts"
    assert (found.summary.older, found.summary.undated, found.summary.statements) == (1, 1, 1)
    everything = read_workload([tmp_path / "log.jsonl"], tables=["t"])
    assert (everything.summary.older, everything.summary.undated, everything.summary.statements) == (0, 0, 3)


def test_a_log_without_times_is_refused_where_a_time_is_asked_for(tmp_path):
    (tmp_path / "log.sql").write_text("SELECT * FROM t WHERE a = 1;")
    with pytest.raises(LogError, match="don't tell when statements ran"):
        read_workload([tmp_path / "log.sql"], tables=["t"], since=datetime(2026, 1, 8, tzinfo=timezone.utc))
    with pytest.raises(LogError, match="has no time zone"):
        read_workload([tmp_path / "log.sql"], tables=["t"], since=datetime(2026, 1, 8))
