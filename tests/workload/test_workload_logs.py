"""Query logs of every kind come to the same workload, and broken ones to a count or a clear error."""

import gzip
import json
from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.predicates.expressions import Column, Compare, Constant, In, IsNull, Or, StartsWith, Unknown
from zonal.predicates.wording import describe
from zonal.workload.iceberg_filters import read_iceberg
from zonal.workload.pushed_filters import read_partition_filters, read_pushed
from zonal.workload.query import LogError
from zonal.workload.reader import read_workload
from zonal.workload.records import moment_of, roles_of
from zonal.workload.weights import Weighting

EVENTS = Path(__file__).parents[1] / "data" / "spark_events.jsonl"
ROWS = [
    ("select * from shop.t where a = 1", "2026-01-01 00:00:00", 100),
    ("select * from t where b in (1, 2);", "2026-01-03 00:00:00", 300),
    ("select * from elsewhere", "2026-01-02 00:00:00", 5),
]


def read(*paths, tables=("t",), **options):
    return read_workload(
        list(paths), tables=list(tables), **{"dialect": "spark", "weighting": Weighting(cap=None), **options}
    )


def found(workload):
    return {describe(query.predicate): (query.count, query.bytes) for query in workload.queries}


def write(folder, ending, names=("query_text", "start_time", "bytes_scanned")):
    path = folder / f"log{ending}"
    dicts = [dict(zip(names, row, strict=True)) for row in ROWS]
    if ending.startswith((".csv", ".tsv")):
        mark = "\t" if ending.startswith(".tsv") else ","
        lines = [mark.join(names), *(f'"{sql}"{mark}{time}{mark}{size}' for sql, time, size in ROWS)]
        text = "\n".join(lines) + "\n"
    elif ending.startswith(".json") and not ending.startswith(".jsonl"):
        text = json.dumps(dicts, indent=1)
    elif ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(dicts), path)
        return path
    else:
        text = "\n".join(json.dumps(row) for row in dicts)
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize(
    "ending", [".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".csv.gz", ".json.gz"]
)
def test_all_formats_tell_the_same(tmp_path, ending):
    workload = read(write(tmp_path, ending))
    assert found(workload) == {"a = 1": (1, 100), "b IN (1, 2)": (1, 300)}
    assert (workload.summary.statements, workload.summary.matched, workload.summary.other_tables) == (3, 2, 1)
    assert workload.summary.days == 2.0
    assert workload.queries[0].last == datetime(2026, 1, 3, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "names",
    [
        ("QUERY_TEXT", "START_TIME", "BYTES_SCANNED"),
        ("statement_text", "start_time", "read_bytes"),
        ("query", "create_time", "physical_input_bytes"),
        ("query", "created", "physicalInputBytes"),
        ("Query", "creation_time", "total_bytes_processed"),
        ("SQL", "timestamp", "bytes"),
    ],
)
def test_the_histories_of_engines_are_known_by_their_columns(tmp_path, names):
    assert found(read(write(tmp_path, ".csv", names))) == {"a = 1": (1, 100), "b IN (1, 2)": (1, 300)}


def test_a_query_beside_a_query_text_is_its_number():
    assert roles_of(("query", "querytxt")).sql == "querytxt"


def test_nested_events_are_looked_into(tmp_path):
    path = tmp_path / "events.jsonl"
    event = {
        "metadata": {"query": ROWS[0][0]},
        "statistics": {"physicalInputBytes": 7},
        "createTime": "2026-01-01T00:00Z",
    }
    path.write_text(json.dumps(event) + "\n")
    assert found(read(path)) == {"a = 1": (1, 7)}


def test_a_document_with_one_list_is_that_list(tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"next": None, "items": [{"sql": ROWS[0][0]}]}))
    assert found(read(path)) == {"a = 1": (1, None)}


def test_a_folder_is_all_logs_in_it(tmp_path):
    write(tmp_path, ".jsonl"), write(tmp_path, ".csv")
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner", ".parquet")
    (tmp_path / "_SUCCESS").touch()
    assert found(read(tmp_path)) == {"a = 1": (3, 100), "b IN (1, 2)": (3, 300)}


def test_sql_files_are_read_in_the_dialect_that_fits(tmp_path):
    path = tmp_path / "log.sql"
    path.write_text("select `a` from t where n = 'it\\'s; so';\nselect * from t where a <=> 1;\n" * 3)
    workload = read(path, dialect=None)
    assert workload.summary.unparsable == 0
    assert workload.summary.statements == 6


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("log.csv", "who,what\n1,2\n", ["'who'", "'what'", "query_text"]),
        ("log.jsonl", '{"who": 1}\n{"who": 2}\n', ["'who'"]),
        ("log.json", "[1, ", ["no JSON"]),
        ("log.parquet", "nothing", ["Parquet"]),
        ("log.txt", "select 1", ["log.txt", ".jsonl"]),
    ],
)
def test_a_log_without_sql_is_refused_with_what_it_has(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(LogError) as error:
        read(tmp_path / name)
    assert all(word in str(error.value) for word in words)


def test_a_log_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(LogError, match=r"nowhere\.sql"):
        read(tmp_path / "nowhere.sql")
    with pytest.raises(LogError, match="no query logs"):
        read(tmp_path)


def test_broken_entries_are_counted(tmp_path):
    path = tmp_path / "log.jsonl"
    good = json.dumps({"sql": ROWS[0][0]})
    path.write_bytes(
        f'{good}\n{{"sql": \n{{"sql": null}}\n7\n'.encode() + b'{"sql": "\xff\xfe \x00"}\n' + good.encode()
    )
    summary = read(path).summary
    assert (summary.statements, summary.matched, summary.unparsable) == (6, 2, 4)


def test_a_log_that_is_cut_off_is_read_up_to_there(tmp_path):
    path = tmp_path / "log.jsonl.gz"
    rows = "".join(json.dumps({"sql": f"select * from t where a = {n % 9} -- {n}"}) + "\n" for n in range(20_000))
    path.write_bytes(gzip.compress(rows.encode())[:-2000])
    summary = read(path).summary
    assert summary.unparsable == 1
    assert summary.matched > 1000
    assert "cut off" in summary.examples[0]


@pytest.mark.parametrize("ending", [".sql", ".csv", ".jsonl", ".json", ".parquet"])
@given(junk=st.binary(max_size=300))
def test_junk_is_counted_or_refused(tmp_path_factory, ending, junk):
    path = tmp_path_factory.mktemp("junk") / f"log{ending}"
    path.write_bytes(junk)
    try:
        summary = read(path).summary
    except LogError:
        return
    assert summary.statements == summary.parsed + summary.unparsable


def test_enormous_statements_are_counted_as_unparsable(tmp_path):
    path = tmp_path / "log.sql"
    path.write_text("select * from t where a in (" + "1," * 5_000_000 + "1);\nselect * from t where a = 1;")
    summary = read(path).summary
    assert (summary.statements, summary.unparsable, summary.matched) == (2, 1, 1)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-02 03:04:05",
        "2026-01-02T03:04:05Z",
        "2026-01-02 05:04:05.000 +0200",
        1767323045,
        1767323045000,
        "1767323045000000",
        1767323045.0,
        datetime(2026, 1, 2, 3, 4, 5),
    ],
)
def test_times_are_read_in_many_forms(value):
    assert moment_of(value, timezone.utc) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize("value", [None, "", "soon", -1, True, float("nan"), 1e300, "9" * 30, [], b"x"])
def test_what_is_no_time_is_left_out(value):
    assert moment_of(value, timezone.utc) is None


# Spark's event logs: tests/data/spark_events.jsonl is a trimmed log of Spark 4.1 with Parquet, Delta and Iceberg tables


def test_scans_of_a_parquet_folder_are_found_by_its_name_or_path():
    by_name = read(EVENTS, tables=["shop.events"])
    assert by_name == read(EVENTS, tables=["file:///warehouse/data/shop/events/"])
    assert found(by_name) == {
        "payload_id = 7 AND ts >= 2026-01-01 05:00:00": (1, 8888),
        "name = 'a, b) or (c'": (1, 3028),
        "name IN ('it''s', 'x', 'y', 'z')": (1, 3028),
        "name LIKE 'n1%' OR payload_id < 3": (1, 8888),
        "(payload_id < 5 OR payload_id > 9) AND day <= 2026-02-01": (1, 26856),
        "region = 1 AND payload_id IN (1, 2, 3)": (1, 14472),
        "day = 2026-01-05": (1, 26856),
        "name IS NOT NULL AND something of name: a pattern that begins with anything": (1, 8888),
        "region = 2": (1, 20664),
        "day > 2026-01-03": (1, 20664),
        "payload_id > 990": (1, 10984),
        "raw IS NOT NULL AND something of raw: a value that Spark's plan doesn't show": (1, 5700),
    }
    assert {q.joins for q in by_name.queries if describe(q.predicate) in ("region = 2", "day > 2026-01-03")} == {
        ("payload_id",)
    }


def test_scans_of_a_delta_table_are_found_with_their_partitions():
    queries = found(read(EVENTS, tables=["devents"]))
    assert queries["region = '1' AND payload_id IN (1, 2, 3)"] == (1, 8288)
    assert "payload_id = 3" in queries, "DELETE looks for its files"
    assert "TRUE" not in queries, "and then reads only those"


def test_scans_of_an_iceberg_table_are_found_with_their_times():
    queries = found(read(EVENTS, tables=["ice.db.ievents"]))
    assert "payload_id = 7 AND ts >= 2026-01-01 05:00:00+00:00" in queries
    assert "(payload_id < 5 OR payload_id > 9) AND day <= 2026-02-01" in queries
    assert "name IN ('x', 'y,z', 'it''s')" in queries
    assert "name LIKE 'n1%' OR payload_id < 3" in queries


@pytest.mark.parametrize("tables", [["events"], ["default.devents"], ["db.ievents"], ["nothing"]])
def test_every_execution_of_an_event_log_is_accounted_for(tables):
    summary = read(EVENTS, tables=tables).summary
    assert summary.statements == summary.parsed == summary.matched + summary.other_tables == 37
    assert (summary.matched > 0) == (tables != ["nothing"])
    assert summary.dialect == "spark"


@pytest.mark.parametrize("codec", ["gzip", "zstd", None])
def test_rolled_and_compressed_event_logs_are_one_log(tmp_path, codec):
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    lines = EVENTS.read_bytes().splitlines(keepends=True)
    (folder / "appstatus_app-1").touch()
    for number, part in enumerate((lines[:60], lines[60:]), 1):
        ending = {"gzip": ".gz", "zstd": ".zstd", None: ""}[codec]
        with (
            pa.CompressedOutputStream(str(folder / f"events_{number}_app-1{ending}"), codec)
            if codec
            else (folder / f"events_{number}_app-1").open("wb") as out
        ):
            out.write(b"".join(part))
    assert found(read(tmp_path, tables=["events"])) == found(read(EVENTS, tables=["events"]))


def test_an_event_that_is_cut_off_is_counted(tmp_path):
    path = tmp_path / "app-1.inprogress"
    path.write_bytes(EVENTS.read_bytes()[:2000])
    summary = read(path, tables=["events"]).summary
    assert (summary.statements, summary.unparsable) == (1, 1)


def test_spark_s_own_lz4_is_refused(tmp_path):
    path = tmp_path / "app-1.lz4"
    path.write_bytes(b"LZ4Block" + bytes(40))
    with pytest.raises(LogError, match="zstd"):
        read(path)


# Filters in plans


def column(name):
    return Column(name, quoted=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", Constant(True)),
        ("[IsNotNull(a)]", IsNull(column("a"), negated=True)),
        ("[Not(EqualTo(a,7))]", Compare(column("a"), "<>", 7)),
        ("[Not(In(s, [p,q]))]", In(column("s"), ("p", "q"), negated=True)),
        ("[Not(StringStartsWith(s,x))]", StartsWith(column("s"), "x", negated=True)),
        ("[Not(Or(LessThan(a,1),GreaterThan(a,9)))]", "a >= 1 AND a <= 9"),
        ("[EqualNullSafe(s,x)]", Compare(column("s"), "=", "x")),
        ("[Not(EqualNullSafe(s,x))]", Or((Compare(column("s"), "<>", "x"), IsNull(column("s"))))),
        ("[EqualTo(d,2026-01-05)]", Compare(column("d"), "=", date(2026, 1, 5))),
        ("[EqualTo(z,2026-01-05T00:00:00Z)]", Compare(column("z"), "=", datetime(2026, 1, 5, tzinfo=timezone.utc))),
        ("[EqualTo(a,1), EqualTo(s,x(IsNull(b)), Nonsense)]", "a = 1 AND s = 'x(IsNull(b)), Nonsense'"),
        ("[EqualTo(unknown,7)]", Compare(column("unknown"), "=", "7")),
        ("[AlwaysFalse()]", Constant(False)),
    ],
)
def test_pushed_filters_are_read(text, expected):
    predicate = read_pushed(text, {"a": "bigint", "s": "string", "d": "date", "z": "timestamp"})
    assert (describe(predicate) if isinstance(expected, str) else predicate) == expected


@pytest.mark.parametrize(
    "text", ["[Spatial(a,1)]", "[EqualTo(a", "[And(EqualTo(a,1))]", "[" + "Not(" * 500, "[In(a, 1)]"]
)
def test_filters_that_are_not_known_are_unknown(text):
    assert isinstance(read_pushed(text, {"a": "bigint"}), Unknown)


@given(
    st.text(max_size=80), st.sampled_from(["[EqualTo(s,%s)]", "[In(s, [%s])]", "[%s]", "[Or(EqualTo(s,%s),IsNull(s))]"])
)
def test_no_text_breaks_the_reader_of_pushed_filters(text, form):
    describe(read_pushed(form % text, {"s": "string"}))
    describe(read_partition_filters(form % text))
    describe(read_iceberg(text, longs=(), times={}))


def test_partition_filters_keep_their_values_as_text():
    text = "[isnotnull(region#1), (region#1 = eu), day#2 IN (2026-01-01,2026-01-02), (hour(ts#3) = 1)]"
    assert describe(read_partition_filters(text)) == (
        "region = 'eu' AND day IN ('2026-01-01', '2026-01-02') "
        "AND something of ts: a filter on partitions that zonal doesn't read"
    )


def test_numbers_of_iceberg_become_times_where_the_plan_shows_it():
    text = "d = 20458, t >= 1767243600000000, n = 20458, big = 1767243600000000"
    predicate = read_iceberg(text, longs={"big"}, times={"d": "date"})
    assert (
        describe(predicate)
        == "d = 2026-01-05 AND t >= 2026-01-01 05:00:00+00:00 AND n = 20458 AND big = 1767243600000000"
    )
