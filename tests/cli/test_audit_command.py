"""`zonal audit`: exit codes, outputs, what to run next, many tables, and webhooks."""

import json
import os
import shlex
import subprocess
import sys
from datetime import timedelta

import pytest
from typer.testing import CliRunner

import zonal
from support.audit_life import Life, late_part
from support.grouped import changed
from support.webhook_server import listening
from zonal.auditing.audit import Alert
from zonal.cli import app
from zonal.errors import ZonalError
from zonal.history.records import HistoryError
from zonal.history.store import History
from zonal.report.audit_wording import remedy


@pytest.fixture
def table(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    return life


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_an_alert_is_exit_code_2_and_in_the_json(table, tmp_path):
    database = f"sqlite:///{tmp_path / 'cli.db'}"
    calm = run(table.name, "--queries", table.log, "--database", database)
    assert calm.exit_code == 0, calm.output
    assert "no alert" in calm.output
    table.until("compacted")
    told = run(table.name, "--queries", table.log, "--database", database, "--output", "json")
    assert told.exit_code == 2
    found = json.loads(told.stdout)
    assert {alert["kind"] for alert in found["alerts"]} == {"ratio", "worse"}
    assert "widened x" in found["commits"][0]["sentence"]
    assert [each["id"] for each in found["culprits"]] == [table.stages["compacted"].version], "for a webhook, too"
    trend = run(table.name, "--trend", "--database", database)
    assert trend.exit_code == 0
    assert "ALERT" in trend.output
    prometheus = run(table.name, "--queries", table.log, "--no-database", "--output", "prometheus")
    assert f'zonal_audit_ratio{{table="{table.name.removeprefix("delta:")}"' in prometheus.stdout


def test_a_hidden_trees_cuts_are_in_no_output_and_no_history(tmp_path, monkeypatch):
    """Its cuts are the values that queries compare with, packed."""
    from support.local_runner import run_here

    monkeypatch.setenv("no_proxy", "*")
    life = Life("delta", tmp_path)
    life.until("written")
    database = f"sqlite:///{tmp_path / 'h.db'}"
    done = zonal.cluster(
        life.name, layout="tree", queries=[life.log], files=zonal.NewFiles(target_file_size=4_000),
        spark=run_here, database=database, **life.options,
    )  # fmt: skip
    assert "cuts=" in done.layout
    life.home.append(late_part())
    with listening() as (server, host):
        options = ["--queries", life.log, "--database", database, "--hide-literals", "--alert-ratio", "0.001"]
        told = [run(life.name, *options, "--webhook", f"http://{host}/", "--output", "json").stdout]
        trend = [life.name, "--trend", "--database", database, "--output"]
        told += [run(*trend, form).stdout for form in ("json", "text")]
        told += [run(life.name, *options[:2], "--hide-literals", "--history", 2, "--output", "json").stdout]
    told += [sent.decode() for _, _, sent in server.heard]
    told += [(tmp_path / "h.db").read_bytes().decode(errors="replace")]
    assert len(told) == 6
    assert all("tree(" in each for each in told)
    assert not any("cuts=" in each for each in told)


def test_an_alert_stays_one_whatever_becomes_of_its_page(table, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")

    def full(*_):
        raise ZonalError("The page can't be written: No space left on device.")

    monkeypatch.setattr("zonal.cli.audit.write_report", full)
    calm = run(table.name, "--queries", table.log, "--no-database", "--report", tmp_path / "a.html")
    assert calm.exit_code == 1
    assert "no alert" in calm.stdout, "what was found is printed before"
    table.until("compacted")
    with listening() as (server, host):
        told = run(
            table.name, "--queries", table.log, "--no-database", "--alert-ratio", "0.001", "--webhook",
            f"http://{host}/", "--report", tmp_path / "a.html",
        )  # fmt: skip
    assert told.exit_code == 2
    assert "Alert: Queries read" in told.stdout
    assert "No space left" in told.stderr
    assert len(server.heard) == 1


def zonal_process(*arguments, stdout, **environment):
    command = [sys.executable, "-m", "zonal", *map(str, arguments)]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, **environment}
    )


def test_a_reader_that_has_gone_away_and_a_full_disk_leave_the_alert(table):
    table.until("compacted")
    options = ["audit", table.name, "--queries", table.log, "--no-database", "--alert-ratio", "0.001"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        told = zonal_process(*options, stdout=gone)
    assert (told.returncode, told.stderr) == (2, "")
    with open("/dev/full", "wb") as full:
        told = zonal_process(*options, stdout=full)
    assert told.returncode == 2
    assert "The output can't be written: No space left on device." in told.stderr
    assert "Traceback" not in told.stderr


def test_an_output_that_knows_few_characters_gets_others(table):
    for verb in (["show", table.name], ["audit", table.name, "--queries", table.log, "--no-database", "--history", 2]):
        told = zonal_process(*verb, stdout=subprocess.PIPE, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert (told.returncode, told.stderr) == (0, "")


def test_a_history_that_cant_be_written_is_told_beside_every_output(table, monkeypatch):
    def full(*_):
        raise HistoryError("The disk is full.")

    monkeypatch.setattr(History, "_add", full)
    told = run(table.name, "--queries", table.log, "--output", "prometheus", "--database", "sqlite:///nowhere.db")
    assert told.exit_code == 0
    assert "This audit isn't in the history. The disk is full." in told.stderr


@pytest.mark.parametrize(
    ("log", "arguments", "message"),
    [
        ("", [], "The logs hold no statement"),
        ("SELEC * FRM", [], "None of the logs' 1 statements can be read, as"),
        (
            "SELECT * FROM elsewhere WHERE x = 1",
            [],
            "No query in the logs reads it: 1 statement is about something else. The logs read 'elsewhere': if that is",
        ),
        ('{"query": "SELECT * FROM life", "start_time": "2020-01-01"}', ["--since", "1d"], "1 is older than the time"),
    ],
)
def test_why_nothing_is_asked_is_told(table, tmp_path, log, arguments, message):
    path = tmp_path / f"other.{'json' if arguments else 'sql'}"
    path.write_text(log)
    told = run(table.name, "--queries", path, "--no-database", *arguments)
    assert told.exit_code == 1
    assert message in str(told.exception)


def spoken(told, start):
    """The command behind a sentence of an output, as the words that a shell makes of it."""
    (line,) = [line for line in told.stdout.splitlines() if start in line]
    return shlex.split(line.partition(start)[2])


def run_words(words, *more):
    assert words[0] == "zonal"
    return CliRunner().invoke(app, [*words[1:], *more])


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_an_alert_says_what_to_run_and_that_runs(kind, tmp_path):
    life = Life(kind, tmp_path)
    life.until("compacted")
    place = [f"--catalog={life.options['catalog']}"] if kind == "iceberg" else []
    options = life.options.get("storage_options", {})
    place += [f"--storage-option={key}={value}" for key, value in options.items()]
    told = run(life.name, "--queries", life.log, "--no-database", *place)
    assert told.exit_code == 2, told.output
    words = spoken(told, "To repair it: ")
    assert words[:3] == ["zonal", "cluster", life.name]
    assert not any(value in word for value in options.values() for word in words), "they may be secrets"
    for name, value in options.items():
        words[words.index(f"{name}=…")] = f"{name}={value}"
    planned = run_words(words, "--dry-run", "--output", "json")
    assert planned.exit_code == 0, planned.output
    assert json.loads(planned.stdout)["files"] == len(life.stages["compacted"].files)


def test_a_table_without_a_layout_is_to_be_advised_with_the_same_log(tmp_path):
    life = Life("delta", tmp_path)
    life.until("written")
    told = run(life.name, "--queries", life.log, "--name", "an other", "--no-database", "--alert-ratio", "0.01")
    words = spoken(told, "To find a layout: ")
    assert words == ["zonal", "advise", life.name, "--queries", str(life.log), "--name", "an other"]
    assert "zorder" in run_words(words).stdout


def test_a_version_is_left_out_of_the_command(table):
    table.until("compacted")
    told = run(f"{table.name}@{table.home.version()}", "--queries", table.log, "--no-database")
    assert spoken(told, "To repair it: ") == ["zonal", "cluster", table.name]


def test_a_layout_as_good_as_new_is_no_alert_however_much_is_read(table):
    for how in ([], ["--metadata-only"]):
        told = run(table.name, "--queries", table.log, "--no-database", "--alert-ratio", "0.001", *how)
        assert told.exit_code == 0
        why = "every file is in the table's layout" if how else "the layout is as good as new"
        assert f"more than the limit of 0.1%, but {why}: no alert." in told.stdout
        assert "zonal cluster" not in told.stdout


def test_files_outside_of_the_layout_are_an_alert_even_without_a_look_at_rows(table):
    table.until("appended")
    for how in ([], ["--metadata-only"]):
        told = run(table.name, "--queries", table.log, "--no-database", "--alert-ratio", "0.001", *how)
        assert told.exit_code == 2
        files = len(table.home.files())
        assert f"1 of {files} files is not in its layout. To repair it: zonal cluster " in told.stdout
        assert "--full" not in told.stdout


def test_a_whole_table_is_to_be_clustered_where_all_of_it_is_in_its_layout(table):
    found = zonal.audit(table.name, queries=[table.log])
    alert = Alert("ratio", 0.5, 0.3, "Too much is read.")
    worn = changed(found, alerts=(alert,), saving=0.5, outside=0)
    assert remedy(worn) == ("To repair it:", f"zonal cluster {found.table.name} --full")
    good = changed(found, alerts=(alert,), saving=0.0, outside=3)
    what, command = remedy(good)
    files = found.table.files
    assert what.startswith(f"3 of {files} files are not in its layout, but clustering them would save hardly anything.")
    assert command == f"zonal advise {found.table.name} --queries …"
    assert remedy(found) is None
    could = changed(found, saving=0.42, outside=3)
    what = "No alert, but clustering could save about 42% of the bytes that queries read:"
    assert remedy(could) == (what, f"zonal cluster {found.table.name}")


def test_an_older_version_is_no_point_of_the_trend(table, tmp_path, monkeypatch):
    monkeypatch.setattr("zonal.report.page.audit_charts._SAME", timedelta(0))
    options = ["--queries", table.log, "--database", f"sqlite:///{tmp_path / 'h.db'}", "--report", tmp_path / "a.html"]
    for _ in range(2):
        assert run(table.name, *options).exit_code == 0
    assert '"kind":"trend"' in (tmp_path / "a.html").read_text()
    assert run(table.name, *options, "--at", 3).exit_code == 2
    assert '"kind":"trend"' not in (tmp_path / "a.html").read_text()


def test_versions_are_printed_one_below_the_other(table):
    told = run(table.name, "--queries", table.log, "--history", 2, "--no-database")
    assert told.exit_code == 0, told.output
    rows = [[cell.strip() for cell in line.split("│")] for line in told.output.splitlines() if "│" in line]
    assert "OPTIMIZE by zonal" in " ".join(row[2] for row in rows), "its words may be one below the other"
    assert [row[1] for row in rows if row[1]] == ["3", "4"]
    older = run(table.name, "--queries", table.log, "--at", 1, "--no-database", "--output", "json")
    assert json.loads(older.stdout)["version"] == 1


def test_many_tables_are_audited_by_a_file(table, tmp_path):
    table.until("compacted")
    (tmp_path / "zonal.toml").write_text(
        f'database = "sqlite:///kept.db"\n[defaults]\nqueries = ["queries.sql"]\nalert_ratio = 0.01\n'
        f'[[tables]]\ntable = "{table.name}"\n'
    )
    told = run("--config", tmp_path / "zonal.toml", "--output", "json")
    assert told.exit_code == 2, told.output
    (found,) = json.loads(told.stdout)
    assert found["alerts"][0]["limit"] == 0.01
    assert (tmp_path / "kept.db").exists()
    (tmp_path / "zonal.toml").write_text(
        f'[[tables]]\ntable = "{table.name}"\nqueries = ["queries.sql"]\n[[tables]]\ntable = "delta:nowhere"\n'
        'queries = ["queries.sql"]\n'
    )
    half = run("--config", tmp_path / "zonal.toml", "--output", "json", "--no-database")
    assert half.exit_code == 1, "one table can't be audited"
    good, bad = json.loads(half.stdout)
    assert good["table"] == table.name.removeprefix("delta:")
    assert bad == {"table": f"delta:{tmp_path}/nowhere", "error": bad["error"]}
    assert "nowhere" in bad["error"]
    text = run("--config", tmp_path / "zonal.toml", "--no-database", "--report", tmp_path / "all.html")
    assert "1 of 1 table raises an alert; 1 table can't be audited." in text.stdout
    page = (tmp_path / "all.html").read_text()
    assert "/nowhere" in page
    assert page.count('href="#table-1"') == page.count('id="table-1"') == 1
    assert f"<code>zonal cluster {table.name}</code>" in page
    assert table.name.removeprefix("delta:") in page


@pytest.mark.parametrize("way", ["option", "environment", "file"])
def test_an_alert_is_posted_and_calm_is_not(table, tmp_path, monkeypatch, way):
    monkeypatch.setenv("no_proxy", "*")
    with listening() as (server, host):
        url, limit = f"http://{host}/hook", "alert_ratio = {}"
        config = tmp_path / "zonal.toml"
        given = {"option": ["--webhook", url], "environment": [], "file": []}[way]
        if way == "environment":
            monkeypatch.setenv("ZONAL_WEBHOOK", url)

        def audited(ratio):
            head = f'webhook = "{url}"\n' if way == "file" else ""
            entry = f'[[tables]]\ntable = "{table.name}"\nqueries = ["queries.sql"]\n{limit.format(ratio)}\n'
            config.write_text(head + entry)
            return run("--config", config, "--no-database", "--output", "json", *given)

        assert audited(0.01).exit_code == 0, "its layout is as good as new"
        assert server.heard == []
        table.until("compacted")
        told = audited(0.01)
        assert told.exit_code == 2
    ((path, _, sent),) = server.heard
    assert path == "/hook"
    assert json.loads(sent) == json.loads(told.stdout)[0], "what is printed is what is sent"


def test_a_webhook_in_a_file_is_checked_before_any_work(tmp_path):
    config = tmp_path / "zonal.toml"
    config.write_text('webhook = "ftp://x"\n[[tables]]\ntable = "delta:nowhere"\nqueries = ["queries.sql"]\n')
    told = run("--config", config)
    assert "only http and https" in str(told.exception)
    assert "nowhere" not in told.output


def test_a_table_that_a_file_names_twice_in_other_words_is_told_once(table, tmp_path):
    plain = table.name.removeprefix("delta:")
    names = [plain, f"{plain}/../{plain.rpartition('/')[2]}"]
    entries = "".join(f'[[tables]]\ntable = "{name}"\nqueries = ["queries.sql"]\n' for name in names)
    (tmp_path / "zonal.toml").write_text(entries)
    told = run("--config", tmp_path / "zonal.toml", "--output", "prometheus", "--no-database")
    assert told.exit_code == 1
    assert "which stands there before: leave one out" in told.stderr
    assert told.stdout.count("zonal_audit_ratio{") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a table"),
        (["t"], "--queries"),
        (["t", "--config", "x.toml"], "leave out TABLE"),
        (["--config", "x.toml", "--trend"], "leave out --trend"),
        (["--config", "x.toml", "--alert-ratio", "0.3"], "leave out --alert-ratio"),
        (["t", "--queries", "q.sql", "--history", "2", "--report", "x.html"], "leave out --report"),
        (["t", "--queries", "q.sql", "--webhook", "ftp://x"], "http"),
        (["t", "--trend", "--at", "3"], "leave out --at"),
        (["t", "--trend", "--alert-ratio", "7"], "from 0 to 1"),
        (["t", "--trend", "--output", "prometheus"], "leave out --output prometheus"),
        (["t", "--queries", "q.sql", "--history", "2", "--webhook", "http://x"], "leave out --webhook"),
        (["n\udcf6such", "--queries", "q.sql"], "is not text in UTF-8"),
        (["t", "--queries", "q.sql", "--since", "yesterday"], "is no time"),
        (["t", "--queries", "q.sql", "--report", "x.txt"], "let it end in .html"),
    ],
)
def test_commands_that_make_no_sense_are_refused(arguments, message):
    told = run(*arguments)
    assert told.exit_code == 1
    assert message in str(told.exception)
