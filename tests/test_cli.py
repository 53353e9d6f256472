"""The command line as a user meets it: in a process of its own."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "zonal.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_version_and_help():
    assert run("--version").stdout == f"zonal {zonal.__version__}\n"
    helped = run("--help")
    assert helped.returncode == 0
    assert "demo" in helped.stdout
    assert "Exit codes" in helped.stdout


def test_an_unknown_command_gets_the_nearest():
    told = run("dmo")
    assert told.returncode == 2
    assert "Did you mean 'demo'?" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "ts,payload"], "Unknown column 'payload'. Did you mean 'payload_id'?"),
        (["--data", "orderz.parquet", "--by", "x"], "There is no 'orderz.parquet'. Did you mean 'orders.parquet'?"),
        (["--data", "orders.parquet"], "Say which columns of your data to cluster by"),
        (["--data", "orders.parquet", "--by", "tags"], "Column 'tags' has type"),
        (["--data", "orders.parquet", "--by", "x"], "1 rows are too few for 240 files"),
        (["--data", "junk.parquet", "--by", "x"], "'junk.parquet' can't be read as Parquet"),
        (["--into", "."], "exists and is not an empty folder"),
        (["--data", "nulls.parquet", "--by", "x", "--files", "10"], "Column 'x' has only nulls"),
        (["--data", "nulls.parquet", "--by", "x", "--format", "both"], "leave out --format"),
    ],
)
def test_mistakes_are_explained_in_a_line(tmp_path, arguments, message):
    pq.write_table(pa.table({"x": [1], "tags": [[1]]}), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"x": pa.nulls(100, pa.int8())}), tmp_path / "nulls.parquet")
    (tmp_path / "junk.parquet").write_bytes(b"PAR1junk")
    told = run("demo", *arguments, cwd=tmp_path)
    assert told.returncode == 1
    assert message in told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout == ""


def test_importing_zonal_starts_nothing():
    heavy = ("pyspark", "deltalake", "pyiceberg", "sqlglot", "rich")
    code = f"import sys, zonal; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "events"
    path.mkdir()
    for number in range(4):
        rows = pa.table({"id": range(number * 100, number * 100 + 100), "name [red]": [f"\x1b[31m{number}"] * 100})
        pq.write_table(rows, path / f"{number}.parquet", row_group_size=50)
    return path


def test_show_tells_how_well_columns_skip(folder):
    told = run("show", folder)
    assert told.returncode == 0, told.stderr
    assert "4 files, 400 rows" in told.stdout
    assert "a look-up of id reads 1 of 4 files" in told.stdout
    assert "name [red]" in told.stdout, "a name is text, not markup"
    assert "\x1b" not in told.stdout
    assert json.loads(run("show", folder, "--output", "json", "--columns", "id").stdout)["files"] == 4


def test_explain_tells_what_a_query_reads(folder):
    told = run("explain", folder, "--where", "id BETWEEN 120 AND 130", "--files")
    assert told.returncode == 0, told.stderr
    assert "id skipped 3 files" in told.stdout
    assert "1.parquet" in told.stdout
    found = json.loads(run("explain", folder, "--sql", "SELECT * FROM t WHERE id = 5", "--output", "json").stdout)
    assert [(level["name"], level["kept"]) for level in found["levels"]] == [("files", 1), ("row groups", 1)]


def test_a_query_of_several_tables_says_which_one_this_is(folder):
    query = "SELECT * FROM events e JOIN users u ON e.id = u.id WHERE e.id = 5 AND u.id > 100"
    assert "Name one of them: 'events', 'users'" in run("explain", folder, "--sql", query).stderr
    assert "id skipped 3 files" in run("explain", folder, "--sql", query, "--as", "events").stdout
    assert "id skipped 1 file\n" in run("explain", folder, "--sql", query, "--as", "users").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "{}s"], "Did you mean 'events'?"),
        (["show", "{}", "--columns", "idd"], "Unknown column 'idd'. Did you mean 'id'?"),
        (["show", "{}", "--storage-option", "secret"], "'secret' is not KEY=VALUE"),
        (["show", "{}@7"], "plain Parquet has no versions"),
        (["explain", "{}"], "either a condition (where) or a query (sql)"),
        (["explain", "{}", "--where", "idd = 3"], "Unknown column 'idd'. Did you mean 'id'?"),
        (["explain", "{}", "--where", "id = "], "can't be read"),
        (["explain", "{}", "--where", "id = 3", "--dialect", "duckdbb"], "Did you mean 'duckdb'?"),
        (["explain", "{}", "--where", "id = 3", "--timezone", "Mars"], "time zone 'Mars'"),
    ],
)
def test_mistakes_with_tables_are_explained_in_a_line(folder, arguments, message):
    told = run(*(argument.format(folder) for argument in arguments))
    assert told.returncode == 1
    assert message in told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout == ""
