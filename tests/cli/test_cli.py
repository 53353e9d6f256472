"""The command line as a user meets it: in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from deltalake import write_deltalake

import zonal
from support.local_runner import run_here
from zonal.cli import main
from zonal.cli.options import stoppable
from zonal.report.terminal.progress import step_bar
from zonal.values.progress import Step


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "zonal", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture
def run_inside(monkeypatch, capsys):
    """The same in this process, where many commands run: each process would load all libraries anew."""

    def ran(*arguments):
        monkeypatch.setattr(sys, "argv", ["zonal", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = stopped.code or 0
        told = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=told.out, stderr=told.err)

    return ran


def test_version_and_help():
    assert run("--version").stdout == f"zonal {zonal.__version__}\n"
    helped = run("--help")
    assert helped.returncode == 0
    assert "demo" in helped.stdout
    assert "Exit codes" in helped.stdout


def test_short_names_of_version_and_help():
    assert run("-V").stdout == run("--version").stdout
    assert run("cluster", "-h").stdout == run("cluster", "--help").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_work_cleanly_and_say_what_stays(number, capsys):
    before, swept = signal.getsignal(number), []

    def work():
        try:
            os.kill(os.getpid(), number)
        finally:
            swept.append(True)

    with pytest.raises(typer.Exit) as stopped, stoppable():
        work()
    assert stopped.value.exit_code == 130
    assert swept, "what the work does when it is interrupted"
    assert "Stopped. Nothing was changed." in capsys.readouterr().err
    assert signal.getsignal(number) == before


def test_ctrl_c_while_libraries_are_loaded_prints_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    told = subprocess.run(
        [sys.executable, "-m", "zonal", "--version"],
        check=False, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert (told.returncode, told.stdout, told.stderr) == (130, "", "")


def test_an_alert_is_another_exit_code_than_a_misspelled_option(folder, tmp_path):
    (tmp_path / "q.sql").write_text("SELECT * FROM t WHERE id >= 0;")
    line = ["audit", folder, "--queries", tmp_path / "q.sql", "--name", "t", "--no-database", "--alert-ratio"]
    alarmed = run(*line, "0", "--metadata-only")
    assert alarmed.returncode == 2, alarmed.stderr
    assert run(*line, "0").returncode == 0, "a look at rows shows that no layout would save anything"
    assert run(*line, "1").returncode == 0
    assert run(*line, "much").returncode == 64


def test_an_unknown_command_gets_the_nearest():
    told = run("dmo")
    assert told.returncode == 64, "2 is an alert of an audit"
    assert "Did you mean 'demo'?" in told.stderr


def test_a_mistake_is_explained_by_a_process_too(tmp_path):
    told = run("demo", "--by", "ts,payload", cwd=tmp_path)
    assert told.returncode == 1
    assert "Unknown column 'payload'. Did you mean 'payload_id'?" in told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout == ""


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
def test_mistakes_are_explained_in_a_line(tmp_path, arguments, message, run_inside, monkeypatch):
    pq.write_table(pa.table({"x": [1], "tags": [[1]]}), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"x": pa.nulls(100, pa.int8())}), tmp_path / "nulls.parquet")
    (tmp_path / "junk.parquet").write_bytes(b"PAR1junk")
    monkeypatch.chdir(tmp_path)
    told = run_inside("demo", *arguments)
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
    assert "id: files skipped 3" in told.stdout
    assert "1.parquet" in told.stdout
    found = json.loads(run("explain", folder, "--sql", "SELECT * FROM t WHERE id = 5", "--output", "json").stdout)
    assert [(level["name"], level["kept"]) for level in found["levels"]] == [("files", 1), ("row groups", 1)]


def test_a_query_of_several_tables_says_which_one_this_is(folder, run_inside):
    query = "SELECT * FROM {} e JOIN users u ON e.id = u.id WHERE e.id = 5 AND u.id > 100"
    assert (
        "Name one of them (--as): 'orders', 'users'"
        in run_inside("explain", folder, "--sql", query.format("orders")).stderr
    )
    assert "id: files skipped 3" in run_inside("explain", folder, "--sql", query.format("events")).stdout, (
        "its own name"
    )
    for option in ("--as", "--name"):
        told = run_inside("explain", folder, "--sql", query.format("orders"), option, "orders")
        assert "id: files skipped 3" in told.stdout
        told = run_inside("explain", folder, "--sql", query.format("events"), option, "users")
        assert "id: files skipped 1\n" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "{}s"], "Did you mean 'events'?"),
        (["show", "{}", "--columns", "idd"], "Unknown column 'idd'. Did you mean 'id'?"),
        (["show", "{}", "--storage-option", "secret"], "'secret' is not KEY=VALUE"),
        (["show", "{}@7"], "plain Parquet has no versions"),
        (["explain", "{}"], "either a condition (--where) or a query (--sql)"),
        (["explain", "{}", "--where", "idd = 3"], "Unknown column 'idd'. Did you mean 'id'?"),
        (["explain", "{}", "--where", "id = "], "can't be read"),
        (["explain", "{}", "--where", "id = 3", "--dialect", "duckdbb"], "Did you mean 'duckdb'?"),
        (["explain", "{}", "--where", "id = 3", "--timezone", "Mars"], "time zone 'Mars'"),
    ],
)
def test_mistakes_with_tables_are_explained_in_a_line(folder, arguments, message, run_inside):
    told = run_inside(*(argument.format(folder) for argument in arguments))
    assert told.returncode == 1
    assert message in told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout == ""


QUERIES = """
SELECT * FROM events WHERE id = 5;
SELECT count(*) FROM db.events WHERE id BETWEEN 120 AND 130;
SELECT * FROM recent WHERE id > 390;
SELECT * FROM events WHERE idd = 7;
SELECT * FROM orders WHERE id = 5;
SELECT FROM WHERE 'broken;
"""


@pytest.fixture(scope="module")
def logs(folder):
    where = folder.parent
    (where / "queries.sql").write_text(QUERIES)
    (where / "recent.sql").write_text("SELECT * FROM events WHERE id > 100")
    (where / "other.sql").write_text("SELECT * FROM orders WHERE id = 5")
    (where / "latin.sql").write_bytes("SELECT 'é' FROM events".encode("latin-1"))
    (where / "counts.csv").write_text("a,b\n1,2\n")
    return where


def test_advise_says_what_to_do_with_a_table(folder, logs):
    view, page = f"recent={logs / 'recent.sql'}", logs / "advice.html"
    line = ["advise", folder, "--queries", logs / "queries.sql", "--target-file-size", "1KB", "--view", view]
    told = run(*line, "--report", page)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("Leave it"), "the verdict comes first"
    assert "4 files" in told.stdout
    assert "leave as it is" in told.stdout
    assert "full scans    1 of these" in told.stdout, "the table has no column idd"
    assert "6: 5 read, 1 can't be read" in told.stdout
    assert "4; 1 ask other tables" in told.stdout, "the view's query counts"
    assert page.read_text().startswith("<!DOCTYPE html>")
    found = json.loads(run(*line, "--output", "json", "--hide-literals").stdout)
    assert (found["verdict"], found["files"], found["hidden"]) == ("leave", 4, True)
    assert found["summary"]["matched"] == 4


def test_advise_without_a_query_of_the_table_prints_what_it_read_and_fails(folder, logs):
    told = run("advise", folder, "--queries", logs / "other.sql")
    assert told.returncode == 1
    assert told.stdout.startswith("No query in the logs reads it")
    assert "of this table 0; 1 ask other tables" in told.stdout
    assert told.stderr == ""
    named = run("advise", folder, "--queries", logs / "other.sql", "--name", "orders")
    assert named.returncode == 0, "the log knows the table by another name"
    assert "of this table 1;" in named.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queries", "nothing.sql"], "There is no query log"),
        (["--queries", "{}/counts.csv"], "has no column with SQL"),
        (["--queries", "{}/queries.sql", "--dialect", "sparkk"], "Did you mean 'spark'?"),
        (["--queries", "{}/queries.sql", "--timezone", "Mars"], "time zone 'Mars'"),
        (["--queries", "{}/queries.sql", "--view", "recent"], "--view 'recent' is not KEY=VALUE"),
        (["--queries", "{}/queries.sql", "--view", "recent={}/recnt.sql"], "The view 'recent' can't be read from"),
        (["--queries", "{}/queries.sql", "--view", "recent={}/latin.sql"], "is not text in UTF-8"),
        (["--queries", "{}/queries.sql", "--report", "{}/queries.sql"], "let it end in .html"),
        (["--queries", "{}/queries.sql", "--report", "{}/no/advice.html"], "a folder that doesn't exist"),
        (["--queries", "{}/queries.sql", "--cap", "2"], "--cap 2.0 is no share: give a number above 0 and up to 1."),
        (["--queries", "{}/queries.sql", "--half-life", "0"], "--half-life 0.0 is no half-life. Give days above 0."),
        (["--queries", "{}/queries.sql", "--scan-price", "nan"], "--scan-price nan is not a number"),
        (["--queries", "{}/queries.sql", "--sample-rows", "0"], "--sample-rows 0 is not a positive number"),
        (["--queries", "{}/queries.sql", "--target-file-size", "3"], "'3' is not a size"),
    ],
)
def test_mistakes_with_advise_are_explained_in_a_line(folder, logs, arguments, message, monkeypatch, capsys):
    """In this process: there are many of them."""
    monkeypatch.setattr(sys, "argv", ["zonal", "advise", str(folder), *(each.format(logs) for each in arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr()
    assert stopped.value.code == 1
    assert message in told.err
    assert told.out == ""
    assert (logs / "queries.sql").read_text() == QUERIES, "a log is never overwritten"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layout", "tree"], "give their logs with --queries"),
        (["--layout", "auto", "--queries", "{}/queries.sql", "--by", "id"], "leave out --by id."),
        (["--queries", "{}/queries.sql"], "say --layout auto or --layout tree to learn one"),
        (["--by", "nowhere", "--queries", "{}/queries.sql"], "nowhere"),
        (["--by", "id", "--name", "orders"], "--name tells how to read --queries"),
        (["--by", "id", "--dialect", "spark"], "--dialect tells how to read --queries"),
        (["--by", "id", "--half-life", "3"], "--half-life tells how to read --queries"),
        (["--layout", "tree", "--queries", "nothing.sql"], "There is no query log"),
        (["--layout", "tree", "--queries", "{}/other.sql"], "No query in the logs reads it"),
    ],
)
def test_mistakes_with_learned_layouts_are_explained_before_spark_starts(
    folder, logs, arguments, message, monkeypatch, capsys
):
    line = ["zonal", "cluster", str(folder), "--into", f"delta:{logs}/copy", *(each.format(logs) for each in arguments)]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr()
    assert stopped.value.code == 1
    assert message in told.err
    assert told.out == ""
    assert not (logs / "copy").exists()


# --- pages -----------------------------------------------------------------------------------------------------------


def run_here_instead(monkeypatch, *line):
    """Run a command in this process, with rewrites in it, too: no Spark is started."""
    monkeypatch.setattr("zonal.verbs.cluster.runner_at", lambda *_: nullcontext(run_here))
    monkeypatch.setattr(sys, "argv", ["zonal", *map(str, line)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.fixture
def delta(tmp_path):
    """Rows in no order."""
    for start in range(8):
        rows = pa.table({"id": [(start + 8 * at) * 7919 % 4001 for at in range(500)], "x": [start % 3] * 500})
        write_deltalake(tmp_path / "orders<b>", rows, mode="append")
    return tmp_path / "orders<b>"


@pytest.mark.parametrize(
    "line",
    [["show"], ["show", "--columns", "id", "--output", "json"], ["explain", "--where", "id = 77"],
     ["cluster", "--by", "id", "--target-file-size", "4KB"]],
    ids=["show", "show as JSON", "explain", "cluster"],
)  # fmt: skip
def test_a_report_is_a_page_beside_what_is_printed(delta, line, monkeypatch, capsys):
    page = delta.parent / "page.html"
    assert run_here_instead(monkeypatch, line[0], delta, *line[1:], "--report", page) == 0
    assert capsys.readouterr().out.strip(), "the result is printed all the same"
    written = page.read_text()
    assert written.startswith("<!DOCTYPE html>")
    assert "orders&lt;b&gt;" in written, "it names the table …"
    assert "orders<b>" not in written, "… as text"


def test_a_report_of_a_learned_layout_hides_what_queries_ask_for(delta, monkeypatch):
    log, page = delta.parent / "log.sql", delta.parent / "page.html"
    log.write_text("\n".join(f"SELECT * FROM orders WHERE id BETWEEN {low} AND {low + 13};" for low in (1234, 2345)))
    line = ["cluster", delta, "--layout", "tree", "--queries", log, "--name", "orders", "--target-file-size", "2KB"]
    assert run_here_instead(monkeypatch, *line, "--hide-literals", "--report", page) == 0
    written = page.read_text()
    assert "id &gt;= ? AND id &lt;= ?" in written or "id BETWEEN ? AND ?" in written
    assert not {"1234", "1247", "2345", "2358"} & set(re.findall(r"\d+", visible(written)))


def visible(page):
    """Return a page without the scripts that are the same in all."""
    return re.sub(r"<script(?![^>]*json)[^>]*>.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("line", [["show"], ["explain", "--where", "id = 3"], ["cluster", "--by", "id"]])
@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("page.txt", "let it end in .html"),
        ("orders<b>", "let it end in .html"),
        ("no/page.html", "lies in a folder that doesn't exist"),
        ("folder.html", "is a folder"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_before_the_work_begins(
    delta, line, page, message, monkeypatch, capsys
):
    (delta.parent / "folder.html").mkdir()
    before = sorted(delta.rglob("*"))
    assert run_here_instead(monkeypatch, line[0], delta, *line[1:], "--report", delta.parent / page) == 1
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""
    assert sorted(delta.rglob("*")) == before, "nothing is rewritten"


def test_a_plan_has_no_page(delta, monkeypatch, capsys):
    page = delta.parent / "page.html"
    line = ["cluster", delta, "--by", "id", "--dry-run", "--report", page]
    assert run_here_instead(monkeypatch, *line) == 1
    assert "--report draws the files that a rewrite made: leave it out, or --dry-run." in capsys.readouterr().err
    assert not page.exists()


def test_the_bar_forgets_how_long_the_last_step_was(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with step_bar() as report:
        report(Step("reading the logs", done=50, total=100))
        report(Step("sampling"))
    said = capsys.readouterr().err
    assert "sampling" in said
    assert "%" not in said.rpartition("sampling")[2]


def test_advise_asks_for_a_log(folder):
    told = run("advise", folder)
    assert told.returncode == 64
    assert "--queries" in told.stderr
