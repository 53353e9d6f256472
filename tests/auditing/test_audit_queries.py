"""Which queries an audit counts, and what it refuses."""

import json
import re
from datetime import datetime, timezone

import pytest

import zonal
from support.audit_life import Life, late_part
from support.pages import audit_page
from zonal.errors import TableError, ZonalError
from zonal.verbs.audit import audit_versions
from zonal.workload.query import Workload

SECRET = re.compile(r"(?<!\d)2718(?!\d)")
"""A value that queries ask for; numbers of bytes may have its digits, too."""


def test_queries_that_are_left_out_are_told(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    conditions = [*(f"x = {number}" for number in range(30)), "nowhere = 1", "x = ?"]
    found = zonal.audit(life.name, queries=Workload.of(conditions), sampling=zonal.Sampling(queries=20))
    told = " ".join(found.made.notes)
    assert "12 light queries are left out" in told
    small = zonal.audit(life.name, queries=Workload.of(conditions[-3:]), sampling=zonal.Sampling(look=False))
    assert "don't fit the table's columns: 1 of all queries" in " ".join(small.made.notes)
    assert small.workload.queries == 2


def test_plain_parquet_has_no_commits_to_blame(tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "plain").mkdir()
    for number in range(3):
        pq.write_table(late_part().slice(100 * number, 100), tmp_path / "plain" / f"{number}.parquet")
    found = zonal.audit(str(tmp_path / "plain"), queries=Workload.of(["x = 990"]))
    assert (found.table.files, found.asked[0].reads.files, found.blame.commits) == (3, 1, ())
    with pytest.raises(TableError, match="plain Parquet, which has no versions"):
        audit_versions(str(tmp_path / "plain"), queries=Workload.of(["x = 990"]), versions=2)


def test_a_sample_of_the_queries_stands_for_all_and_is_drawn_again_the_same_way(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    many = Workload.of([f"x = {7 * number % 4000}" for number in range(300)])
    whole = zonal.audit(life.name, queries=many, sampling=zonal.Sampling(look=False))
    some = zonal.audit(life.name, queries=many, sampling=zonal.Sampling(look=False, queries=100, seed=3))
    again = zonal.audit(life.name, queries=many, sampling=zonal.Sampling(look=False, queries=100, seed=3))
    assert (whole.workload.queries, some.workload.queries) == (300, 100)
    assert [each.source for each in some.asked] == [each.source for each in again.asked]
    assert some.reads.ratio == pytest.approx(whole.reads.ratio, rel=0.2)
    assert sum(each.count for each in some.asked) == pytest.approx(300, abs=5), "they stand for all runs"


def test_queries_since_a_time_count(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    log = tmp_path / "log.jsonl"
    days = ["2026-01-01", "2026-01-05", "2026-01-09"]
    entries = [{"query": f"SELECT * FROM life WHERE x = {n}", "start_time": day} for n, day in enumerate(days)]
    log.write_text("\n".join(map(json.dumps, entries)))
    since = datetime(2026, 1, 5, tzinfo=timezone.utc)
    found = zonal.audit(life.name, queries=zonal.Logs([log], since=since), sampling=zonal.Sampling(look=False))
    assert found.workload.queries == 2
    assert found.workload.summary.older == 1


def test_hidden_values_are_nowhere(tmp_path):
    life = Life("delta", tmp_path)
    life.until("compacted")
    found = zonal.audit(life.name, queries=[life.log], display=zonal.Display(hide_literals=True, picture=True))

    from zonal.report.machine.json_form import to_json

    assert not SECRET.search(to_json(found))
    assert not SECRET.search(audit_page(found).rpartition("plotly")[2])


def test_a_partitioned_table_is_held_against_its_partitions(tmp_path):
    import pyarrow as pa
    from deltalake import write_deltalake

    for part in range(4):
        for step in range(3):
            rows = pa.table({"p": [part] * 10, "x": list(range(100 * step, 100 * step + 10))})
            write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["p"])
    found = zonal.audit(
        str(tmp_path / "t"), queries=Workload.of(["p = 1 AND x = 5", "x = 105"]), sampling=zonal.Sampling(look=False)
    )
    by_source = {each.source: each for each in found.asked}
    first, second = by_source["condition 1"], by_source["condition 2"]
    assert (first.reads.files, first.reads.partition_files, first.reads.ratio) == (1, 3, 1 / 3)
    assert (second.reads.files, second.reads.partition_files, second.reads.ratio) == (4, 12, 1 / 3)
    assert found.reads.ratio == pytest.approx((1 + 4) / (3 + 12))
    assert found.reads.partition_file_share == pytest.approx((3 / 12 + 1) / 2)
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
    found = zonal.audit(str(tmp_path / "t"), queries=Workload.of(asked), sampling=zonal.Sampling(look=False))
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
    with pytest.raises(ZonalError, match=r"Sampling\(queries=0\) is not a positive number"):
        zonal.audit(life.name, queries=[life.log], sampling=zonal.Sampling(queries=0))
    with pytest.raises(ZonalError, match=r"alerts=Alerts\(ratio=2\) is no limit"):
        zonal.audit(life.name, queries=[life.log], alerts=zonal.Alerts(ratio=2))


def test_a_negative_seed_is_refused(tmp_path):
    for verb in (zonal.audit, zonal.advise):
        life = Life("delta", tmp_path / verb.__name__)
        life.until("written")
        with pytest.raises(ZonalError, match=r"Sampling\(seed=-1\) is negative"):
            verb(life.name, queries=[life.log], sampling=zonal.Sampling(seed=-1))
