"""Dry runs of `append`: what would be written, with the same checks and nothing changed."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from support.appends import append_to
from support.cluster_tables import NEWEST, Delta, Parquet, home, never, telemetry
from zonal.cli import app
from zonal.errors import ColumnError, TableError, ZonalError


@pytest.mark.parametrize("kind", NEWEST)
@pytest.mark.parametrize("keys", [(), ("p",)])
def test_a_plan_is_what_the_append_does_and_changes_nothing(kind, keys, tmp_path):
    table = home(kind, tmp_path).make([telemetry(300)], keys)
    table.cluster(layout="zorder(x, y, file_size=16KB)")
    new, before = telemetry(6000, 1, first=1000), table.listing()
    plan = append_to(table, new, dry_run=True, spark=never)
    assert table.listing() == before
    assert (plan.rows, plan.partitions, plan.note) == (6000, 3 if keys else 1, "")
    assert (plan.layout, plan.file_size) == ("zorder(x, y, file_size=16KB)", 16_000)
    done = append_to(table, new)
    assert plan.files == done.files > 3
    assert plan.bytes == pytest.approx(done.bytes, rel=0.25)


def test_a_layout_that_would_be_recorded_is_named(tmp_path):
    table = Delta(tmp_path).make([telemetry(10)])
    assert append_to(table, telemetry(20), by=["x", "y"], dry_run=True).layout == "zorder(x, y)"
    assert table.version() == 0


def test_what_an_append_refuses_its_plan_refuses(tmp_path):
    table = Delta(tmp_path).make([telemetry(10)])
    wrong = telemetry(20).append_column("more", pa.array([1] * 20))
    for asked in ({"dry_run": True}, {}):
        with pytest.raises(ColumnError, match="no column 'more'"):
            append_to(table, wrong, by="x", **asked)
        with pytest.raises(TableError, match="no atomic commit"):
            append_to(Parquet(tmp_path, "p").make([telemetry(3)]), telemetry(20), by="x", **asked)
    assert table.version() == 0


@pytest.mark.parametrize("kind", NEWEST)
def test_a_plan_says_why_nothing_would_be_added(kind, tmp_path):
    table = home(kind, tmp_path).make([telemetry(10)])
    assert append_to(table, telemetry(0), by="x", dry_run=True).note == "There are no rows to append."
    append_to(table, telemetry(5, 1), by="x", transaction=("nightly", 7))
    plan = append_to(table, telemetry(5, 1), transaction=("nightly", 7), dry_run=True)
    assert (plan.rows, plan.repeated) == (0, True)
    assert plan.note == "Version 7 of nightly, or a later one, is in the table already: nothing is added."


def test_a_dataframe_is_refused_before_its_query_runs(tmp_path):
    class DataFrame:
        mapInArrow = None  # noqa: N815 - Spark's name

    DataFrame.__module__ = "pyspark.sql.classic.dataframe"
    table = Delta(tmp_path).make([telemetry(10)])
    with pytest.raises(ZonalError, match="starts no Spark"):
        append_to(table, DataFrame(), by="x", dry_run=True)


def test_the_command_line_prints_a_plan(tmp_path):
    pq.write_table(telemetry(30, 1, first=100), tmp_path / "new.parquet")
    table = Delta(tmp_path).make([telemetry(10)], ["p"])
    words = ["append", str(table.root), str(tmp_path / "new.parquet"), "--by", "x", "--no-database", "--dry-run"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    text = " ".join(told.stdout.split())
    assert "to append 30 rows to 3 partitions" in text
    assert "new files about 3, " in text
    assert "Nothing was changed: leave out --dry-run to do it." in text
    plan = json.loads(CliRunner().invoke(app, [*words, "--output", "json"]).stdout)
    assert (plan["rows"], plan["partitions"], plan["files"]) == (30, 3, 3)
    assert table.version() == 0
