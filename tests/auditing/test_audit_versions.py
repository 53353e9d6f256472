"""Audits of older versions: renamed columns, columns that came again, and no files."""

from datetime import datetime, timezone

import pytest
from deltalake import DeltaTable
from pyiceberg.types import LongType

import zonal
from support.audit_life import QUERIES, Life, late_part
from support.audits import asked_of, at
from zonal.errors import TableError
from zonal.verbs.audit import audit_versions
from zonal.workload.query import Workload


def test_versions_from_before_a_rename_are_asked_by_todays_names(tmp_path):
    life = Life("iceberg", tmp_path)
    life.until("clustered")
    with life.home.table.update_schema() as update:
        update.rename_column("x", "place")
    life.home.table.append(late_part().rename_columns(["place", "t", "payload"]))
    found = audit_versions(life.name, queries=Workload.of(["place = 2718"]), versions=2, **life.options)
    stage = life.stages["clustered"]
    (before,) = [each for each in found if each.table.version == stage.version]
    assert before.asked[0].reads.files == len(stage.read(QUERIES[1])) < before.table.files
    older = zonal.audit(life.name, queries=Workload.of(["place = 2718"]), at=stage.version, **life.options)
    assert older.asked[0].reads.files == before.asked[0].reads.files
    assert older.reads.selectivity is None, "its rows have other names"


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
    assert older.asked[0].reads.files == older.table.files == len(stage.files), "today's x was in none of them"
    found = audit_versions(life.name, queries=Workload.of(["x = 2718"]), versions=2, **life.options)
    assert found[0].asked[0].reads.files == older.table.files


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
    assert "The recorded layout can't be tried: the table has no column 'x' now." in found.made.notes
    assert not found.fresh.recorded


def test_older_versions_of_a_table_without_files_are_audited(tmp_path):
    life = Life("delta", tmp_path)
    stage = life.until("clustered")
    DeltaTable(life.home.root).delete()
    with pytest.raises(TableError, match="has no files"):
        asked_of(life)
    assert at(life, "clustered").reads.ratio == pytest.approx(stage.ratio())
    found = audit_versions(life.name, queries=Workload.of(["x = 2718"]), versions=2)
    assert [each.table.version for each in found] == [stage.version], "one without files is left out"


def test_versions_are_asked_in_the_sessions_time_zone(tmp_path):
    import pyarrow as pa
    from deltalake import write_deltalake

    hours = [datetime(2026, 1, 1, hour, tzinfo=timezone.utc) for hour in range(24)]
    for hour in hours:
        write_deltalake(tmp_path / "t", pa.table({"ts": [hour]}), mode="append")
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE ts >= TIMESTAMP '2026-01-01 20:00:00'")
    for zone, files in (("UTC", 4), ("Asia/Tokyo", 13)):
        now = zonal.audit(
            str(tmp_path / "t"), queries=zonal.Logs([log], timezone=zone), sampling=zonal.Sampling(look=False)
        )
        (then,) = audit_versions(str(tmp_path / "t"), queries=zonal.Logs([log], timezone=zone), versions=1)
        assert now.asked[0].reads.files == then.asked[0].reads.files == files
