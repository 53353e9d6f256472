"""`zonal append` on the command line."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from support.cluster_tables import Delta, assert_same_rows, telemetry


def run(*words):
    from zonal.cli import app

    return CliRunner().invoke(app, ["append", *map(str, words)])


@pytest.fixture
def table(tmp_path):
    pq.write_table(telemetry(30, 1, first=100), tmp_path / "1.parquet")
    pq.write_table(telemetry(20, 2, first=200), tmp_path / "2.parquet")
    return Delta(tmp_path).make([telemetry(10)])


def test_files_are_appended_once(table, tmp_path):
    words = [table.root, tmp_path / "1.parquet", tmp_path / "2.parquet", "--by", "x,y", "--transaction", "nightly:a:7"]
    told = run(*words, "--output", "json", "--no-database")
    assert told.exit_code == 0, told.output
    done = json.loads(told.stdout)
    assert (done["rows"], done["version"], done["layout"], done["repeated"]) == (50, 1, "zorder(x, y)", False)
    again = run(*words, "--no-database")
    assert again.exit_code == 0
    assert "nothing was added" in " ".join(again.stdout.split())
    more = run(table.root, tmp_path / "1.parquet", "--no-database")
    assert "30 rows in 1 file" in " ".join(more.stdout.split())
    parts = [telemetry(10), telemetry(30, 1, first=100), telemetry(20, 2, first=200), telemetry(30, 1, first=100)]
    assert_same_rows(table.rows(), pa.concat_tables(parts))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["1.parquet"], "records no layout: say which columns, as in --by"),
        (["1.parquet", "--by", "x", "--transaction", "seven"], "--transaction 'seven' is not a name and a number"),
        (["nowhere.parquet", "--by", "x"], "There is nothing at"),
    ],
)
def test_errors_end_the_command_with_code_1_and_a_message(words, told, table, tmp_path, monkeypatch, capsys):
    from zonal import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["zonal", "append", str(table.root), *words, "--no-database"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert told in " ".join(capsys.readouterr().err.split())
    assert table.version() == 0
