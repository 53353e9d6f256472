"""`zonal cluster` on the command line."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from support.cluster_tables import (
    Delta,
    assert_same_rows,
    partitions_hold,
    parts_of,
    telemetry,
)


def run(*words):
    from zonal.cli import app

    return CliRunner().invoke(app, ["cluster", *map(str, words)])


def test_a_dry_run_prints_the_plan_and_changes_nothing(tmp_path):
    table = Delta(tmp_path).make(parts_of(telemetry(300), 2))
    listing = table.listing()
    told = run(table.root, "--by", "x, y", "--dry-run", "--output", "json", "--target-file-size", "4KB")
    assert told.exit_code == 0, told.output
    plan = json.loads(told.stdout)
    assert (plan["files"], plan["rows"], plan["layout"]) == (2, 300, "zorder(x, y, file_size=4KB)")
    text = run(table.root, "--by", "x,y", "--dry-run")
    assert text.exit_code == 0
    assert "300" in text.stdout
    assert table.listing() == listing


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--by", "nix"], "Unknown column 'nix'"),
        (["--by", "x", "--max-bytes", "5"], "'5' is not a size"),
        (["--by", "x", "--conf", "nonsense"], "--conf 'nonsense' is not KEY=VALUE"),
        (["--by", "x", "--into", "delta:/tmp/x", "--dry-run"], "leave out --into"),
        ([], "records no layout"),
    ],
)
def test_errors_end_the_command_with_code_1_and_a_message(words, told, tmp_path, monkeypatch, capsys):
    from zonal import cli

    table = Delta(tmp_path).make([telemetry(30)])
    monkeypatch.setattr("sys.argv", ["zonal", "cluster", str(table.root), *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert told in " ".join(capsys.readouterr().err.split())
    assert table.version() == 0


@pytest.mark.spark
def test_the_command_rewrites_on_spark_and_reports_json(spark, tmp_path):  # noqa: ARG001 - its session is used
    before = telemetry(3000)
    numbers = before["y"].to_pylist()
    before = before.set_column(2, "y", pa.array([math.nan, *numbers[1:]]))
    table = Delta(tmp_path).make(parts_of(before, 3), ["p"])
    told = run(table.root, "--by", "x,y", "--target-file-size", "8KB", "--output", "json")
    assert told.exit_code == 0, told.output
    done = json.loads(told.stdout)
    assert (done["rows"], done["versions"], done["added_files"]) == (3000, [3], len(table.files()))
    assert_same_rows(table.rows(), before)
    partitions_hold(table, before)
    silent = [file for file in table.files() if not file.footer.row_group(0).column(2).is_stats_set]
    (alone,) = (pq.read_table(file.path, partitioning=None)["y"].to_pylist() for file in silent)
    assert any(map(math.isnan, alone)), "where NaN is travels through Spark"
