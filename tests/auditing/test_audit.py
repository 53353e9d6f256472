"""`audit` over the life of a table: its numbers are those of the files' own footers, and it blames who did it."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from deltalake import DeltaTable
from pyiceberg.types import LongType
from typer.testing import CliRunner

import zonal
from support.audit_life import HOPELESS, QUERIES, STAGES, Life, late_part
from support.webhook_server import listening
from zonal.auditing.audit import Alert, CommitAudit, Width
from zonal.auditing.blame.culprits import culprits_of
from zonal.cli import app
from zonal.errors import TableError, ZonalError
from zonal.history.records import HistoryError
from zonal.history.store import History
from zonal.report.terminal.audit import remedy
from zonal.verbs.audit import audit_versions
from zonal.workload.query import Workload

RUNS = sum(asked.count for asked in (*QUERIES, HOPELESS))


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def life(request, tmp_path_factory):
    """A table at the end of its life."""
    found = Life(request.param, tmp_path_factory.mktemp(request.param))
    found.until(STAGES[-1])
    return found


def asked_of(life, **more):
    options = {"queries": [life.log], "cap": None, "look": False, **more}
    return zonal.audit(life.name, **life.options, **options)


def at(life, stage, **more):
    """The audit of a stage, by its version."""
    return asked_of(life, at=life.stages[stage].version, **more)


@pytest.mark.parametrize("stage", STAGES)
def test_numbers_are_those_of_the_files_footers(life, stage):
    found, expected = at(life, stage), life.stages[stage]
    assert found.version == expected.version
    assert (found.files, found.bytes) == (len(expected.files), expected.bytes)
    assert found.ratio == pytest.approx(expected.ratio()), "of the queries that statistics can help"
    assert found.byte_share == pytest.approx(expected.byte_share()), "of all queries"
    assert found.hindered == pytest.approx(HOPELESS.count / RUNS)
    by_source = {each.source: each for each in found.asked}
    assert len(by_source) == len(QUERIES) + 1
    line = 1
    for asked in (*QUERIES, HOPELESS):
        audited, read = by_source[f"queries.sql:{line}"], expected.read(asked)
        assert audited.files == len(read)
        assert audited.bytes == sum(file.size for file in read)
        assert audited.partition_files == len(expected.files), "an unpartitioned table is one partition"
        assert audited.weight == pytest.approx(asked.count / RUNS)
        assert bool(audited.hindrance) == (asked is HOPELESS)
        line += asked.count


def test_what_is_read_for_nothing_is_never_more_than_what_is_read(life):
    for stage in STAGES:
        for asked in at(life, stage).asked:
            assert 0 <= asked.excess_files <= asked.files + 1e-9
            assert 0 <= asked.excess_bytes <= asked.bytes * (1 + 1e-9)


def test_clustering_is_worth_it_and_the_compaction_spoils_it(life):
    ratios = {stage: at(life, stage).ratio for stage in STAGES}
    assert ratios["clustered"] < 0.3 < ratios["written"]
    assert ratios["compacted"] > 1.5 * ratios["appended"]


def test_the_compaction_is_blamed_with_its_commit_and_the_column(life):
    found = at(life, "compacted")
    assert found.alerts, "it reads more than the limit"
    assert found.culprit is not None
    widest = found.culprit.widths[0]
    assert widest.column == "x"
    assert widest.width == pytest.approx(life.stages["compacted"].mean_width())
    assert widest.before == pytest.approx(life.stages["appended"].mean_width())
    assert " widened x " in found.culprit.sentence
    assert found.culprit.writer.startswith("delta-rs" if life.kind == "delta" else ""), "PyIceberg leaves no name"
    assert str(found.culprit.id) in found.culprit.sentence


@pytest.mark.parametrize("stage", ["compacted", "deleted"])
def test_queries_are_held_against_the_version_from_before_the_compaction(life, stage):
    """A delete that rewrote the wide files is traced back, so that the version before it is no measure."""
    found, good, bad = at(life, stage), life.stages["appended"], life.stages[stage]
    assert found.before.version == good.version
    assert found.before.byte_share == pytest.approx(good.byte_share())
    shares = {each.source: (each.before_share, each.byte_share) for each in found.asked}
    line, worse = 1, 0
    for asked in (*QUERIES, HOPELESS):
        before, now = (sum(file.size for file in each.read(asked)) / each.bytes for each in (good, bad))
        assert shares[f"queries.sql:{line}"] == pytest.approx((before, now))
        line, worse = line + asked.count, worse + (now > before + 0.001)
    assert found.before.worse == worse > 0


def test_without_a_culprit_there_is_no_version_to_be_held_against(life):
    found = at(life, "clustered", picture=True)
    assert found.before is None
    assert all(each.before_share is None for each in found.asked)
    assert [drawing.version for drawing in found.picture.drawings] == [life.stages["written"].version, found.version]


def test_nobody_is_blamed_right_after_clustering(life):
    found = at(life, "clustered")
    assert not found.alerts
    assert found.culprit is None


def test_past_versions_are_audited_from_metadata_alone(life):
    count = sum(stage.versions for stage in life.stages.values())
    found = audit_versions(life.name, queries=zonal.Logs([life.log], cap=None), versions=count, **life.options)
    ratios = {each.version: each.ratio for each in found}
    for stage in life.stages.values():
        assert ratios[stage.version] == pytest.approx(stage.ratio())
    assert [each.version for each in found][-1] == life.stages["deleted"].version
    assert len(audit_versions(life.name, queries=zonal.Logs([life.log], cap=None), versions=2, **life.options)) == 2
    with pytest.raises(ZonalError, match="versions=0 is not a positive number"):
        audit_versions(life.name, queries=[life.log], versions=0, **life.options)


def test_a_look_tells_what_matches_and_what_a_fresh_layout_brings(life):
    found = asked_of(life, look=True)
    stage = life.stages["deleted"]
    total = stage.rows.num_rows
    matching = {asked.sql: _matching(stage.rows, asked) / total for asked in QUERIES}
    by_weight = sum(matching[asked.sql] * asked.count for asked in QUERIES) + HOPELESS.count
    assert found.selectivity == pytest.approx(by_weight / RUNS, rel=0.02), "the sample is the whole table"
    assert found.fresh.recorded
    assert found.fresh.byte_share < found.byte_share
    assert found.fresh.gain == pytest.approx(1 - found.fresh.byte_share / found.byte_share)
    assert all(each.selectivity <= each.byte_share + 0.02 for each in found.asked)
    assert found.row_group_share <= found.byte_share + 1e-9


def test_a_version_by_number_is_predicted_as_the_newest_is(life):
    """How files are written, compressed above all, decides how many of them a layout is cut into."""
    newest, pinned = asked_of(life, look=True), at(life, "deleted", look=True)
    assert pinned.fresh == newest.fresh
    assert [each.fresh_share for each in pinned.asked] == [each.fresh_share for each in newest.asked]


def _matching(rows, asked):
    found = rows.to_pylist()
    return sum(all(low <= row[name] <= high for name, (low, high) in asked.ranges.items()) for row in found)


def test_audits_are_remembered_and_the_next_one_is_held_against_them(tmp_path):
    life = Life("delta", tmp_path)
    database = f"sqlite:///{tmp_path / 'history.db'}"
    life.until("clustered")
    first = asked_of(life, database=database, alert_ratio=None)
    assert not first.alerts, "there is nothing to be worse than"
    life.until("compacted")
    second = asked_of(life, database=database, alert_ratio=None)
    assert [alert.kind for alert in second.alerts] == ["worse"]
    assert second.alerts[0].limit == pytest.approx(1.5 * first.ratio)
    asked_of(life, database=database, at=life.stages["clustered"].version)
    with History.open(database) as history:
        records = history.audits(first.location)
    assert [record.ratio for record in records] == pytest.approx([first.ratio, second.ratio]), (
        "past versions aren't kept"
    )
    assert records[1].culprit == second.culprit.sentence
    assert records[1].alerts == (second.alerts[0].text,)


def test_a_history_that_cant_be_written_costs_neither_the_audit_nor_the_rewrite(tmp_path, monkeypatch):
    from support.local_runner import run_here

    life = Life("delta", tmp_path)
    life.until("written")

    def full(*_):
        raise HistoryError("The disk is full.")

    monkeypatch.setattr(History, "_add", full)
    database = f"sqlite:///{tmp_path / 'history.db'}"
    found = asked_of(life, database=database)
    assert "This audit isn't in the history. The disk is full." in found.notes
    done = zonal.cluster(life.name, by=["x"], runner=run_here, database=database, **life.options)
    assert done.versions
    assert done.note == "The run isn't in the history. The disk is full."
    with pytest.raises(HistoryError):
        zonal.cluster(life.name, by=["t"], runner=run_here, database="nosuch://x", **life.options)
    with pytest.raises(ZonalError, match="database='False' is no history"):
        zonal.audit("delta:/no/such/table", queries=["no such log"], database=False)
    assert zonal.open_table(life.name).snapshot().version == done.versions[-1], "refused before any work"


def test_a_version_by_name_is_audited_but_neither_compared_nor_kept(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    database = f"sqlite:///{tmp_path / 'history.db'}"
    found = zonal.audit(f"{life.name}@1", queries=[life.log], look=False, database=database)
    assert found.version == 1
    assert not (tmp_path / "history.db").exists()


def test_queries_that_are_left_out_are_told(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    conditions = [*(f"x = {number}" for number in range(30)), "nowhere = 1", "x = ?"]
    found = zonal.audit(life.name, queries=Workload.of(conditions), sample=20)
    told = " ".join(found.notes)
    assert "12 light queries are left out" in told
    small = zonal.audit(life.name, queries=Workload.of(conditions[-3:]), look=False)
    assert "1 different queries don't fit the table's columns" in " ".join(small.notes)
    assert small.queries == 2


def test_plain_parquet_has_no_commits_to_blame(tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "plain").mkdir()
    for number in range(3):
        pq.write_table(late_part().slice(100 * number, 100), tmp_path / "plain" / f"{number}.parquet")
    found = zonal.audit(str(tmp_path / "plain"), queries=Workload.of(["x = 990"]))
    assert (found.files, found.asked[0].files, found.commits) == (3, 1, ())
    with pytest.raises(TableError, match="plain Parquet, which has no versions"):
        audit_versions(str(tmp_path / "plain"), queries=Workload.of(["x = 990"]), versions=2)


def test_runs_are_remembered_with_what_was_predicted(tmp_path):
    from support.local_runner import run_here

    life = Life("delta", tmp_path)
    life.until("written")
    database = f"sqlite:///{tmp_path / 'history.db'}"
    logs = zonal.Logs([life.log])
    done = zonal.cluster(
        life.name,
        layout="tree",
        queries=logs,
        target_file_size=4_000,
        runner=run_here,
        database=database,
        **life.options,
    )
    with History.open(database) as history:
        (run,) = history.runs(done.location)
    assert (run.run, run.rows, run.version) == (done.run, 4_000, done.versions[-1])
    assert (run.share_before, run.share_predicted, run.share_after) == (
        done.predicted.share_before,
        done.predicted.share_predicted,
        done.predicted.share_after,
    )
    assert (run.predicted_files, run.predicted_bytes) == (done.predicted_files, done.predicted_bytes)
    assert run.predicted_files > 1
    again = zonal.cluster(life.name, runner=run_here, database=database, **life.options)
    assert not again.versions, "there is nothing to do"
    with History.open(database) as history:
        assert len(history.runs(done.location)) == 1, "and nothing to remember"


def test_a_sample_of_the_queries_stands_for_all_and_is_drawn_again_the_same_way(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    many = Workload.of([f"x = {7 * number % 4000}" for number in range(300)])
    whole = zonal.audit(life.name, queries=many, look=False)
    some = zonal.audit(life.name, queries=many, look=False, sample=100, seed=3)
    again = zonal.audit(life.name, queries=many, look=False, sample=100, seed=3)
    assert (whole.queries, some.queries) == (300, 100)
    assert [each.source for each in some.asked] == [each.source for each in again.asked]
    assert some.ratio == pytest.approx(whole.ratio, rel=0.2)
    assert sum(each.count for each in some.asked) == pytest.approx(300, abs=5), "they stand for all runs"


def test_queries_since_a_time_count(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    log = tmp_path / "log.jsonl"
    days = ["2026-01-01", "2026-01-05", "2026-01-09"]
    entries = [{"query": f"SELECT * FROM life WHERE x = {n}", "start_time": day} for n, day in enumerate(days)]
    log.write_text("\n".join(map(json.dumps, entries)))
    since = datetime(2026, 1, 5, tzinfo=timezone.utc)
    found = zonal.audit(life.name, queries=[log], look=False, since=since)
    assert found.queries == 2
    assert found.summary.older == 1


def test_hidden_values_are_nowhere(tmp_path):
    life = Life("delta", tmp_path)
    life.until("compacted")
    found = zonal.audit(life.name, queries=[life.log], hide_literals=True, picture=True)
    from zonal.report.machine.json_form import to_json
    from zonal.report.page.results import audit_page

    assert "2718" not in to_json(found)
    assert "2718" not in audit_page(found).rpartition("plotly")[2]


def test_a_partitioned_table_is_held_against_its_partitions(tmp_path):
    import pyarrow as pa
    from deltalake import write_deltalake

    for part in range(4):
        for step in range(3):
            rows = pa.table({"p": [part] * 10, "x": list(range(100 * step, 100 * step + 10))})
            write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["p"])
    found = zonal.audit(str(tmp_path / "t"), queries=Workload.of(["p = 1 AND x = 5", "x = 105"]), look=False)
    by_source = {each.source: each for each in found.asked}
    first, second = by_source["condition 1"], by_source["condition 2"]
    assert (first.files, first.partition_files, first.ratio) == (1, 3, 1 / 3)
    assert (second.files, second.partition_files, second.ratio) == (4, 12, 1 / 3)
    assert found.ratio == pytest.approx((1 + 4) / (3 + 12))
    assert found.partition_file_share == pytest.approx((3 / 12 + 1) / 2)
    skipped = {(column.column, column.partitions): column.skipped_files for column in found.columns}
    assert skipped["p", True] == pytest.approx((9 / 12) / 2)
    assert skipped["x", False] == pytest.approx((2 / 12 + 8 / 12) / 2)


def test_parts_of_queries_that_skip_by_several_columns_have_their_weight_and_bounds(tmp_path):
    import pyarrow as pa
    from deltalake import write_deltalake

    for start in range(0, 100, 10):
        rows = pa.table({"p": ["a"] * 10, "x": list(range(start, start + 10)), "y": list(range(start, start + 10))})
        write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["p"])
    asked = ["x = 1 OR y = 95", "x = 3", "(x = 2 OR y = 91) AND x < 8", "p = 'a'"]
    found = zonal.audit(str(tmp_path / "t"), queries=Workload.of(asked), look=False)
    told = {each.column: each for each in found.columns}
    assert told["x or y"].weight == pytest.approx(0.5)
    assert told["x or y"].files_with_bounds == 10
    assert told["x"].weight == pytest.approx(0.75)
    assert (told["p"].weight, told["p"].partitions, told["p"].skipped_files) == (pytest.approx(0.25), True, 0)


def test_what_cant_be_audited_is_refused(tmp_path):
    life = Life("delta", tmp_path)
    life.until("written")
    other = tmp_path / "other.sql"
    other.write_text("SELECT * FROM elsewhere;")
    with pytest.raises(TableError, match="No query in the logs reads"):
        zonal.audit(life.name, queries=[other])
    with pytest.raises(TableError, match="No query fits the columns"):
        zonal.audit(life.name, queries=Workload.of(["nowhere = 1"]))
    with pytest.raises(ZonalError, match="sample=0 is not a positive number"):
        zonal.audit(life.name, queries=[life.log], sample=0)
    with pytest.raises(ZonalError, match=r"alert_ratio=.* is no limit"):
        zonal.audit(life.name, queries=[life.log], alert_ratio=2)


def _culprits(widths, weights, read, files=None):
    commits = [
        CommitAudit(
            number, None, "delete", "", "", 1, 1, share, share, None, tuple(each), "",
            read_files_share=(files or read)[number], ids=(number,),
        )
        for number, (each, share) in enumerate(zip(widths, read, strict=True))
    ]  # fmt: skip
    return [each.id for each in culprits_of(commits, weights)]


def test_a_clustering_by_zonal_is_blamed_only_where_nobody_after_it_is():
    def made(number, kind, hour):
        time = datetime(2026, 1, 1, hour, tzinfo=timezone.utc)
        return CommitAudit(number, time, kind, "", "", 1, 1, 0.5, 0.5, 1, (Width("a", 0.5, 0.1),), "", ids=(number,))

    def blamed(*commits):
        return [each.id for each in culprits_of(commits, {"a": 1.0})]

    assert blamed(made(2, "zonal", 2)) == [2]
    assert blamed(made(2, "zonal", 2), made(3, "compaction", 3)) == [3]
    assert blamed(made(1, "compaction", 1), made(2, "zonal", 2)) == [1, 2], "what came before made nothing of it"


def test_a_commit_that_narrows_more_than_it_widens_is_no_culprit():
    weights = {"a": 0.5, "b": 0.5}
    mixed = [Width("a", 0.4, 0.2), Width("b", 0.1, 0.8)]
    wide = [Width("a", 0.4, 0.2), Width("b", 0.8, 0.8)]
    wider = [Width("a", 0.8, 0.2), Width("b", 0.8, 0.8)]
    assert _culprits([mixed], weights, [1.0]) == []
    assert _culprits([mixed, wide], weights, [0.8, 0.2]) == [1]
    assert _culprits([wide, wider], weights, [0.5, 0.5]) == [1, 0], "the worst first"
    assert _culprits([wide] * 5, weights, [0.2] * 5) == [0, 1, 2], "not more than can be read"
    assert _culprits([wide], weights, [0.05]) == [], "next to nothing is read of its files"
    assert _culprits([wide], weights, [0.05], [0.5]) == [0], "but they are many, though small"
    assert _culprits([[Width("a", 0.3, 0.2)]], weights, [1.0]) == [], "half as wide again is no blame"
    assert _culprits([[Width("a", 0.3, None)]], weights, [1.0]) == [], "nothing to compare with"
    assert _culprits([[Width("c", 0.4, 0.1)]], weights, [1.0]) == [], "no query filters it"


def test_versions_from_before_a_rename_are_asked_by_todays_names(tmp_path):
    life = Life("iceberg", tmp_path)
    life.until("clustered")
    with life.home.table.update_schema() as update:
        update.rename_column("x", "place")
    life.home.table.append(late_part().rename_columns(["place", "t", "payload"]))
    found = audit_versions(life.name, queries=Workload.of(["place = 2718"]), versions=2, **life.options)
    stage = life.stages["clustered"]
    (before,) = [each for each in found if each.version == stage.version]
    assert before.asked[0].files == len(stage.read(QUERIES[1])) < before.files
    older = zonal.audit(life.name, queries=Workload.of(["place = 2718"]), at=stage.version, **life.options)
    assert older.asked[0].files == before.asked[0].files
    assert older.selectivity is None, "its rows have other names"


def test_a_column_that_came_again_is_another_one_at_every_older_version(tmp_path):
    life = Life("iceberg", tmp_path)
    life.until("clustered")
    with life.home.table.update_schema() as update:
        update.delete_column("x")
    with life.home.table.update_schema() as update:
        update.add_column("x", LongType())
    life.home.append(late_part().select(["t", "payload", "x"]))
    stage = life.stages["clustered"]
    older = zonal.audit(life.name, queries=Workload.of(["x = 2718"]), at=stage.version, **life.options)
    assert older.asked[0].files == older.files == len(stage.files), "today's x was in none of them"
    found = audit_versions(life.name, queries=Workload.of(["x = 2718"]), versions=2, **life.options)
    assert found[0].asked[0].files == older.files


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_layout_whose_column_is_gone_is_told_and_the_audit_goes_on(tmp_path, kind):
    life = Life(kind, tmp_path)
    life.until("clustered")
    if kind == "iceberg":
        with life.home.table.update_schema() as update:
            update.rename_column("x", "place")
    else:
        import deltalake

        renamed = life.home.rows().rename_columns(["place", "t", "payload"])
        deltalake.write_deltalake(life.home.root, renamed, mode="overwrite", schema_mode="overwrite")
    found = zonal.audit(life.name, queries=Workload.of(["t = 7"]), **life.options)
    assert "The recorded layout can't be tried: the table has no column 'x' now." in found.notes
    assert not found.fresh.recorded


def test_older_versions_of_a_table_without_files_are_audited(tmp_path):
    life = Life("delta", tmp_path)
    stage = life.until("clustered")
    DeltaTable(life.home.root).delete()
    with pytest.raises(TableError, match="has no files"):
        asked_of(life)
    assert at(life, "clustered").ratio == pytest.approx(stage.ratio())
    found = audit_versions(life.name, queries=Workload.of(["x = 2718"]), versions=2)
    assert [each.version for each in found] == [stage.version], "one without files is left out"


def test_versions_are_asked_in_the_sessions_time_zone(tmp_path):
    import pyarrow as pa
    from deltalake import write_deltalake

    hours = [datetime(2026, 1, 1, hour, tzinfo=timezone.utc) for hour in range(24)]
    for hour in hours:
        write_deltalake(tmp_path / "t", pa.table({"ts": [hour]}), mode="append")
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE ts >= TIMESTAMP '2026-01-01 20:00:00'")
    for zone, files in (("UTC", 4), ("Asia/Tokyo", 13)):
        now = zonal.audit(str(tmp_path / "t"), queries=[log], timezone=zone, look=False)
        (then,) = audit_versions(str(tmp_path / "t"), queries=[log], timezone=zone, versions=1)
        assert now.asked[0].files == then.asked[0].files == files


def test_a_negative_seed_is_refused(tmp_path):
    for verb in (zonal.audit, zonal.advise):
        life = Life("delta", tmp_path / verb.__name__)
        life.until("written")
        with pytest.raises(ZonalError, match="seed=-1 is negative"):
            verb(life.name, queries=[life.log], seed=-1)


# --- the command line ------------------------------------------------------------------------------------------------


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
        life.name, layout="tree", queries=[life.log], target_file_size=4_000, runner=run_here, database=database,
        **life.options,
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
        assert "1 of 27 files is not in its layout. To repair it: zonal cluster " in told.stdout
        assert "--full" not in told.stdout


def test_a_whole_table_is_to_be_clustered_where_all_of_it_is_in_its_layout(table):
    found = zonal.audit(table.name, queries=[table.log])
    alert = Alert("ratio", 0.5, 0.3, "Too much is read.")
    worn = replace(found, alerts=(alert,), saving=0.5, outside=0)
    assert remedy(worn) == ("To repair it:", f"zonal cluster {found.table} --full")
    good = replace(found, alerts=(alert,), saving=0.0, outside=3)
    what, command = remedy(good)
    assert what.startswith("3 of 26 files are not in its layout, but clustering them would save hardly anything.")
    assert command == f"zonal advise {found.table} --queries …"
    assert remedy(found) is None
    could = replace(found, saving=0.42, outside=3)
    what = "No alert, but clustering could save about 42% of the bytes that queries read:"
    assert remedy(could) == (what, f"zonal cluster {found.table}")


def test_an_older_version_is_no_point_of_the_trend(table, tmp_path, monkeypatch):
    monkeypatch.setattr("zonal.report.page.audit_charts._SAME", timedelta(0))
    options = ["--queries", table.log, "--database", f"sqlite:///{tmp_path / 'h.db'}", "--report", tmp_path / "a.html"]
    for _ in range(2):
        assert run(table.name, *options).exit_code == 0
    assert '"kind":"trend"' in (tmp_path / "a.html").read_text()
    assert run(table.name, *options, "--at", 1).exit_code == 2
    assert '"kind":"trend"' not in (tmp_path / "a.html").read_text()


def test_versions_are_printed_one_below_the_other(table):
    told = run(table.name, "--queries", table.log, "--history", 2, "--no-database")
    assert told.exit_code == 0, told.output
    assert "OPTIMIZE by" in told.output
    assert "zonal" in told.output
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
