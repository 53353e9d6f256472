"""Messages name options as their reader gives them: parameters in Python, flags on the command line, keys in a file."""

import ast
import os
import shlex
import signal
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from deltalake import write_deltalake
from typer.testing import CliRunner

import zonal
from support.local_runner import run_here
from zonal.cli import app, main
from zonal.cli.options import done_already, plain_notices
from zonal.errors import ZonalError, ZonalNotice, naming_flags, option
from zonal.workload.reader import read_workload

SOURCE = Path(zonal.__file__).parent
NEW_YEAR = datetime(2026, 1, 1, tzinfo=timezone.utc)
COMMANDS = typer.main.get_command(app).commands
FLAGS = {name: {flag for each in command.params for flag in each.opts} for name, command in COMMANDS.items()}


def named_options():
    """Return the names that messages anywhere in the source name options by, and where."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "option"
            if is_call and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, f"{path.name}:{node.lineno}"


def test_every_option_that_a_message_names_is_one_of_a_command():
    found = dict(named_options())
    assert len(found) > 20, "messages name options by `option`"
    known = set().union(*FLAGS.values())
    with naming_flags():
        assert [(name, where) for name, where in found.items() if option(name) not in known] == []


def test_only_the_command_line_and_its_demo_write_flags_by_hand():
    """What is printed on a terminal alone may, and docstrings."""
    by_hand = set()
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith(("cli/", "demo/", "report/")) or place in ("errors.py", "spark/java.py"):
            continue
        tree = ast.parse(path.read_text())
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                by_hand |= {(place, flag) for flag in set().union(*FLAGS.values()) if f"{flag} " in f"{node.value} "}
    assert {each for each in by_hand if each[1].startswith("--")} == set()


@pytest.fixture
def table(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}))
    (tmp_path / "q.sql").write_text("SELECT * FROM t WHERE id = 1;")
    return tmp_path / "t"


def refusal(*line):
    told = CliRunner().invoke(app, [*map(str, line)])
    assert isinstance(told.exception, ZonalError), told.output
    return str(told.exception)


@pytest.mark.parametrize(
    ("line", "python", "told"),
    [
        (["explain"], zonal.explain, "({where}) or a query ({sql})"),
        (["cluster", "--layout", "tree"], lambda t: zonal.cluster(t, layout="tree"), "logs with {queries}"),
        (
            ["cluster", "--layout", "zorder(id)", "--by", "id,x"],
            lambda t: zonal.cluster(t, layout="zorder(id)", by=["id", "x"]),
            "leave out {by}",
        ),
        (
            ["cluster", "--by", "id", "--into", "delta:c", "--full", "--max-bytes", "1MB"],
            lambda t: zonal.cluster(t, by="id", into="delta:c", scope=zonal.Scope(full=True, max_bytes="1MB")),
            "{into} copies the whole table at once: leave out {full}, {max_bytes}.",
        ),
        (
            ["audit", "--queries", "{}/../q.sql", "--sample", "0"],
            lambda t: zonal.audit(t, queries=[f"{t}/../q.sql"], sampling=zonal.Sampling(queries=0)),
            "{sample} is not a positive number",
        ),
        (
            ["audit", "--queries", "{}/../q.sql", "--since", "7d"],
            lambda t: zonal.audit(
                t, queries=zonal.Logs([f"{t}/../q.sql"], since=datetime(2026, 1, 1, tzinfo=timezone.utc))
            ),
            "leave out {since}, or",
        ),
        (
            ["explain", "--sql", "SELECT * FROM a JOIN b USING (id)"],
            lambda t: zonal.explain(t, sql="SELECT * FROM a JOIN b USING (id)"),
            "Name one of them ({read_as})",
        ),
    ],
)
def test_an_error_names_parameters_in_python_and_flags_on_the_command_line(table, line, python, told, monkeypatch):
    monkeypatch.chdir(table.parent)
    flags = {"where": "--where", "sql": "--sql", "queries": "--queries", "by": "--by id,x", "into": "--into",
             "full": "--full", "max_bytes": "--max-bytes", "sample": "--sample 0", "since": "--since",
             "read_as": "--as"}  # fmt: skip
    names = {**{name: name for name in flags}, "by": "by=['id', 'x']",
             "sample": "sampling=Sampling(queries=0)", "since": "queries=Logs(since=…)",
             "max_bytes": "scope=Scope(max_bytes=…)", "full": "scope=Scope(full=…)"}  # fmt: skip
    command, *rest = (part.format(table) for part in line)
    assert told.format(**flags) in refusal(command, table, *rest)
    with pytest.raises(ZonalError) as raised:
        python(str(table))
    assert told.format(**names) in str(raised.value)


def test_a_file_of_tables_has_keys(table, capsys, monkeypatch):
    (table.parent / "z.toml").write_text('[[tables]]\ntable = "t"\nqueries = ["q.sql"]\nalert_ratio = 7\n')
    monkeypatch.setattr(sys, "argv", ["zonal", "audit", "--config", str(table.parent / "z.toml"), "--no-database"])
    with pytest.raises(SystemExit):
        main()
    assert "alert_ratio=7.0 is no limit" in capsys.readouterr().err


def test_flags_are_forgotten_when_the_command_ends(table):
    refusal("explain", table)
    assert option("where") == "where"


# --- quotes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (["--layout", "zorder(id,", "x)"], "--layout 'zorder(id, x)'"),
        (["--by", "id,", "x"], "--by 'id, x'"),
        (["--where", "id", "=", "5", "--full"], "--where 'id = 5'"),
        (["--where=id", "=", "5"], "--where 'id = 5'"),
    ],
)
def test_values_that_a_shell_cut_at_spaces_are_shown_in_quotes(table, rest, told):
    for line in (["cluster", table, *rest], ["cluster", *rest, table]):
        found = CliRunner().invoke(app, [*map(str, line)])
        assert found.exit_code == 2
        assert told in " ".join(found.output.replace("│", " ").split())


def test_a_layout_that_cannot_be_read_is_shown_with_quotes_on_the_command_line(table):
    assert "Write it as --layout 'zorder(ts, payload_id)'." in refusal("cluster", table, "--layout", "zorder(id")
    with pytest.raises(ZonalError, match=r"Write it as zorder\(ts, payload_id\)\."):
        zonal.Layout.parse("zorder(id")


# --- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["show", "{}"], "Stopped. Nothing was changed."),
        (["explain", "{}", "--where", "id = 1"], "Stopped. Nothing was changed."),
        (["advise", "{}", "--queries", "{}/../q.sql"], "Stopped. Nothing was changed."),
        (["cluster", "{}", "--by", "id", "--dry-run"], "Stopped. Nothing was changed."),
        (["audit", "{}", "--queries", "{}/../q.sql", "--no-database"], "Stopped. No table was changed."),
    ],
)
def test_every_command_says_what_an_interrupt_leaves(table, line, told, monkeypatch, capsys):
    def interrupt(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    monkeypatch.setattr("zonal.tables.delta.table.DeltaTable.snapshot", interrupt)
    monkeypatch.setattr(sys, "argv", ["zonal", *(part.format(table) for part in line)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("is_told", [False, True])
def test_a_stopped_demonstration_says_what_of_its_tables_is_left(is_told, tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        if is_told:
            (tmp_path / "kept").mkdir()
            (tmp_path / "kept" / "delta").mkdir()
        raise KeyboardInterrupt("Nothing was committed.")  # as a rewrite says

    monkeypatch.setattr("zonal.demo.terminal.run", interrupt)
    monkeypatch.setattr(sys, "argv", ["zonal", "demo", "--into", str(tmp_path / "kept")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    told = capsys.readouterr().err
    assert told.startswith("Stopped. The tables in" if is_told else "Stopped. What it made is removed.")


def test_an_interrupt_after_the_commit_does_not_say_that_nothing_was_changed():
    with pytest.raises(KeyboardInterrupt, match="version 7"), done_already("It is committed as version 7."):
        raise KeyboardInterrupt


def test_an_interrupt_while_a_rewrite_is_printed_tells_its_version(table, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("zonal.verbs.cluster.runner_at", lambda *_: nullcontext(run_here))
    monkeypatch.setattr("zonal.report.terminal.blocks.print_blocks", interrupt)
    monkeypatch.setattr(sys, "argv", ["zonal", "cluster", str(table), "--by", "id", "--no-database"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    told = capsys.readouterr().err
    assert "committed as version 1" in told
    assert "Nothing was changed" not in told


# --- help and completion ---------------------------------------------------------------------------------------------


def helped(*line):
    return CliRunner().invoke(app, [*line, "--help"], env={"COLUMNS": "120", "NO_COLOR": "1"}).output


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=["zonal", *COMMANDS])
def test_help_has_no_type_behind_flags(command):
    told = helped(*command)
    assert "<bool>" not in told
    assert "BOOLEAN" not in told.upper().replace("--BOOLEAN", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_can_be_parsed(name):
    told = helped(name)
    command = COMMANDS[name]
    examples = [line.strip() for line in command.epilog.splitlines() if line.strip().startswith("zonal ")]
    assert examples
    for example in examples:
        assert example.split(" --")[0] in told
        program, verb, *rest = shlex.split(example.replace("\\[", "["))
        assert (program, verb) == ("zonal", name)
        command.make_context(name, rest)  # an unknown option is an error


def test_help_shows_brackets_as_they_are():
    assert "delta:PATH[@VERSION]" in " ".join(helped("show").replace("│", " ").split())


def test_completion_is_for_the_program_whatever_it_was_started_by():
    line = [sys.executable, "-m", "zonal", "--show-completion"]
    shown = subprocess.run(
        ["bash", "-c", '"$@"; exit $?', "bash", *line], capture_output=True, text=True, check=True
    ).stdout
    assert "_ZONAL_COMPLETE=complete_bash" in shown
    assert shown.rstrip().endswith("zonal"), "the function completes `zonal`"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("zonal ex", {"explain"}),
        ("zonal cluster --commit", {"--commit-every"}),
        ("zonal a", {"advise", "append", "audit"}),
    ],
)
def test_the_script_of_a_shell_gets_what_fits(words, found):
    asked = {**os.environ, "_ZONAL_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(len(words.split()) - 1)}  # fmt: skip
    told = subprocess.run([sys.executable, "-m", "zonal"], env=asked, capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) == found


# --- tables of the log -----------------------------------------------------------------------------------------------


def test_logs_of_other_tables_are_told_by_the_names_that_they_have(table):
    log = table.parent / "other.sql"
    many = "".join(f"SELECT * FROM s{number} WHERE id = 1;\n" for number in range(9))
    log.write_text("SELECT * FROM db.orders o JOIN users USING (id);\n" * 3 + 'SELECT * FROM "\x1b[31mred";\n' + many)
    summary = read_workload([log], tables=["t"]).summary
    assert summary.others[:2] == ("db.orders", "users") or summary.others[:2] == ("users", "db.orders")
    told = refusal("audit", table, "--queries", log, "--no-database")
    assert "'db.orders'" in told
    assert "and 7 more: if one of these is the table, give its name (--name)." in told
    assert "\x1b" not in told
    assert read_workload([log], tables=["users"]).summary.others == (), "only where nobody asks"


def test_what_a_statement_writes_to_is_no_table_that_it_reads(table):
    log = table.parent / "other.sql"
    log.write_text("CREATE TABLE made (id INT);\nINSERT INTO filled WITH c AS (SELECT * FROM source) SELECT * FROM c;")
    assert read_workload([log], tables=["t"]).summary.others == ("source",)


def test_folders_of_parquet_are_told_about_into_as_their_reader_gives_it(tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    assert "use --into" in refusal("cluster", tmp_path, "--by", "id")
    with pytest.raises(ZonalError, match="use into"):
        zonal.cluster(str(tmp_path), by="id")


def test_a_notice_is_printed_without_the_line_of_code_that_gave_it(capsys):
    with plain_notices():
        warnings.warn("Spark has been starting for 15 s.", ZonalNotice, stacklevel=1)
    assert capsys.readouterr().err == "Spark has been starting for 15 s.\n"
