"""Who is to blame, on tables that went bad in many ways: the guilty are found, and the innocent left alone."""

from datetime import datetime, timedelta
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.transforms import DayTransform

import zonal
from support.cluster_tables import Delta, Iceberg
from zonal.workload.query import Workload

QUERIES = [f"x BETWEEN {start} AND {start + 100}" for start in (1000, 15000, 22000, 30000)]
ROWS = 40_000


SEEDS = count()


def rows(xs, **more):
    """Rows of so many bytes each: their texts are never the same."""
    xs = np.asarray(xs)
    texts = pa.array([f"{value:016x}" for value in np.random.default_rng(next(SEEDS)).integers(0, 2**62, len(xs))])
    return pa.table({**{name: pa.array([value] * len(xs)) for name, value in more.items()}, "x": xs, "payload": texts})


def anywhere(many, seed=0):
    return np.random.default_rng(seed).integers(0, ROWS, many)


def asked(home, queries=QUERIES, **more):
    return zonal.audit(
        home.name, queries=Workload.of(queries), sampling=zonal.Sampling(look=False), **home.options, **more
    )


def test_a_sorted_load_is_innocent_of_the_wide_appends_behind_it(tmp_path):
    parts = [rows(range(start, start + 2000)) for start in range(0, ROWS, 2000)]
    home = Delta(tmp_path).make(parts)
    good = asked(home)
    for seed in range(30):
        home.append(rows(anywhere(1000, seed)))
    found = asked(home)
    (culprit,) = found.blame.culprits
    assert culprit.ids == tuple(range(20, 50)), "the appends behind the load, and none of it"
    assert culprit.since == 20
    assert (found.blame.before.version, found.blame.before.byte_share) == (19, pytest.approx(good.reads.byte_share))


@pytest.mark.parametrize("kind", [Delta, Iceberg])
def test_one_wide_append_behind_a_sorted_one_is_guilty(tmp_path, kind):
    home = kind(tmp_path).make([rows(range(start, start + 2000)) for start in range(0, ROWS, 2000)])
    home.append(rows(anywhere(ROWS)))
    found = asked(home)
    assert [culprit.id for culprit in found.blame.culprits] == [found.table.version]


def test_an_append_that_nobody_reads_is_not_among_the_guilty(tmp_path):
    home = Delta(tmp_path).make([rows(anywhere(4000), p="b")], partition_by=["p"])
    home.append(rows(anywhere(4000, 1), p="a"))
    home.cluster(by=["x"], layout="linear", target_file_size=10_000, where="p = 'b'")
    clustered = asked(home, ["p = 'b' AND x = 20000"])
    for seed in range(20):
        home.append(rows(anywhere(500, seed), p="b"))
    found = asked(home, ["p = 'b' AND x = 20000"])
    (culprit,) = found.blame.culprits
    assert (culprit.files, culprit.since) == (20, clustered.table.version + 1)
    assert found.blame.before.version == clustered.table.version
    assert found.blame.before.byte_share == pytest.approx(clustered.reads.byte_share)


def partitioned(tmp_path, many):
    """Partitions of a few sorted files each."""
    parts = [rows(range(0, ROWS, 40), p=f"p{number:02d}") for number in range(many)]
    home = Delta(tmp_path).make(parts, partition_by=["p"])
    home.cluster(by=["x"], layout="linear", target_file_size=5_000)
    return home


def test_a_compaction_that_went_from_partition_to_partition_is_found(tmp_path):
    home = partitioned(tmp_path, 12)
    good = asked(home)
    for number in range(12):
        DeltaTable(home.root).optimize.compact(partition_filters=[("p", "=", f"p{number:02d}")])
    found = asked(home)
    assert all(commit.read_share < 0.1 for commit in found.blame.commits), "each alone is too small to be blamed"
    (culprit,) = found.blame.culprits
    assert (len(culprit.ids), culprit.kind, culprit.since) == (12, "compaction", good.table.version + 1)
    assert culprit.sentence.startswith("12 commits (OPTIMIZE by delta-rs 1.6.6, ")
    assert " widened x " in culprit.sentence
    assert found.blame.before.byte_share == pytest.approx(good.reads.byte_share)


def test_deletes_all_over_the_table_are_traced_to_the_compaction_before_them(tmp_path):
    home = partitioned(tmp_path, 12)
    good = asked(home)
    DeltaTable(home.root).optimize.compact()
    spoiled = asked(home)
    for number in range(12):
        DeltaTable(home.root).delete(f"p = 'p{number:02d}' AND x = 40")
    found = asked(home)
    (culprit,) = found.blame.culprits
    assert (len(culprit.ids), culprit.kind, culprit.since) == (12, "delete", spoiled.table.version)
    assert f"rewrote files that version {spoiled.table.version} (OPTIMIZE by delta-rs 1.6.6, " in culprit.sentence
    assert found.blame.before.version == good.table.version


def test_a_delete_of_old_rows_does_not_make_the_next_append_an_overwrite(tmp_path):
    home = Iceberg(tmp_path).make([rows(range(start, start + 1000)) for start in range(0, 11_000, 1000)])
    home.table.delete("x < 1000")
    home.append(rows(range(11_000, 12_000)))
    found = asked(home, ["x BETWEEN 11100 AND 11150", "x BETWEEN 5000 AND 5050"])
    assert found.blame.culprits == ()
    newest = next(commit for commit in found.blame.commits if commit.id == found.table.version)
    assert (newest.kind, newest.replaced) == ("append", 0)


def test_a_partly_overwritten_table_is_held_against_the_version_before_the_delete(tmp_path):
    data = pa.concat_tables([rows(range(0, ROWS, 4), p="a"), rows(range(0, ROWS, 4), p="b")])
    home = Iceberg(tmp_path).make([data], partition_by=["p"])
    home.cluster(by=["x"], layout="linear", target_file_size=30_000)
    good = asked(home, ["p = 'a' AND x = 4000", "p = 'b' AND x = 4000"])
    home.table.overwrite(rows(np.random.default_rng(0).permutation(range(0, ROWS, 4)), p="a"), "p = 'a'")
    found = asked(home, ["p = 'a' AND x = 4000", "p = 'b' AND x = 4000"])
    assert [culprit.id for culprit in found.blame.culprits] == [found.table.version]
    assert found.blame.before.version == good.table.version, "not the one between the delete and the append"
    assert found.blame.before.byte_share == pytest.approx(good.reads.byte_share)


def test_columns_behind_a_partition_transform_can_be_widened(tmp_path, monkeypatch):
    # PyIceberg's own transform of columns needs a package that isn't needed otherwise.
    monkeypatch.setattr(
        DayTransform, "pyarrow_transform", lambda *_: lambda array: pc.cast(pc.cast(array, pa.date32()), pa.int32())
    )
    start = datetime(2026, 1, 1)
    seconds = np.sort(np.random.default_rng(0).integers(0, 4 * 86_400, 20_000)).tolist()
    data = rows(range(20_000)).append_column("ts", pa.array([start + timedelta(seconds=each) for each in seconds]))
    home = Iceberg(tmp_path)
    table = home.catalog.create_table("db.t", data.schema)
    with table.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "day")
    home.table.append(data)
    home.cluster(by=["ts"], layout="linear", target_file_size=20_000, full=True)
    hour = "ts >= TIMESTAMP '2026-01-02 03:00:00' AND ts < TIMESTAMP '2026-01-02 04:00:00'"
    good = asked(home, [hour])
    assert good.reads.ratio < 0.5
    home.table.overwrite(home.rows().take(pa.array(np.random.default_rng(1).permutation(20_000))))
    found = asked(home, [hour])
    assert found.reads.ratio == 1
    assert " widened ts " in found.blame.culprit.sentence
    assert found.blame.before.version == good.table.version
    assert {(each.column, each.partitions) for each in found.columns} == {("ts", True), ("ts", False)}


def test_a_partitions_own_column_blames_nobody(tmp_path):
    for number in range(6):
        write_deltalake(tmp_path / "t", rows(range(100), p=number), mode="append", partition_by=["p"])
    DeltaTable(tmp_path / "t").optimize.compact()
    found = zonal.audit(str(tmp_path / "t"), queries=Workload.of(["p = 3"]), sampling=zonal.Sampling(look=False))
    assert found.blame.culprits == ()
    assert all(commit.widths == () for commit in found.blame.commits)


def clustered_and_appended(tmp_path, *, each, appends=6):
    """Rows that arrived by `t`, clustered by `x` and `t`, and appends behind them: narrow in `t`, wide in `x`."""

    def arriving(many, first):
        return rows(anywhere(many, first)).append_column("t", pa.array(range(first, first + many)))

    home = Delta(tmp_path).make([arriving(2000, first) for first in range(0, ROWS, 2000)])
    home.cluster(by=["x", "t"], layout="zorder", target_file_size=60_000)
    clustered = home.version()
    for number in range(appends):
        home.append(arriving(each, ROWS + number * each))
    return home, clustered


BY_X_AND_T = [*QUERIES, "t BETWEEN 100 AND 300", "t BETWEEN 30000 AND 30300"]


def test_a_compaction_of_nothing_but_wide_appends_is_blamed_with_them(tmp_path):
    home, clustered = clustered_and_appended(tmp_path, each=400)
    good = asked(home, BY_X_AND_T, at=clustered)
    DeltaTable(home.root).optimize.compact(target_size=30_000)
    found = asked(home, BY_X_AND_T)
    (culprit,) = found.blame.culprits
    assert (culprit.id, culprit.kind, culprit.since) == (found.table.version, "compaction", clustered + 1)
    assert "rewrote files that 6 appends (WRITE by delta-rs" in culprit.sentence
    assert culprit.widths[0].column == "x"
    assert culprit.sentence.endswith("as wide as those beside them")
    assert (found.blame.before.version, found.blame.before.byte_share) == (
        clustered,
        pytest.approx(good.reads.byte_share),
    )


def test_a_compaction_again_of_compacted_appends_is_traced_to_them(tmp_path):
    home, clustered = clustered_and_appended(tmp_path, each=400)
    DeltaTable(home.root).optimize.compact(target_size=15_000)
    DeltaTable(home.root).optimize.compact(target_size=40_000)
    (culprit,) = asked(home, BY_X_AND_T).blame.culprits
    assert (culprit.id, culprit.since) == (home.version(), clustered + 1)


def test_a_compaction_of_clustered_and_appended_files_together_is_blamed_with_the_appends(tmp_path):
    home, clustered = clustered_and_appended(tmp_path, each=ROWS // 4)
    DeltaTable(home.root).optimize.compact()
    found = asked(home, QUERIES)
    (culprit,) = found.blame.culprits
    assert (culprit.id, culprit.since) == (found.table.version, clustered + 1), (
        "most bytes were wide before: yet not all"
    )
    assert "6 appends" in culprit.sentence
    assert found.blame.before.version == clustered


@pytest.mark.parametrize("where", ["x", "t"])
def test_a_clustering_is_innocent_of_what_came_after_it(tmp_path, where):
    home, clustered = clustered_and_appended(tmp_path, each=ROWS // 4)
    queries = [f"{where} = {value}" for value in range(500, ROWS, 2000)]
    if where == "t":  # by which rows arrived: any other order made look-ups of it read more
        queries.append("x = 5000")
    DeltaTable(home.root).optimize.compact(target_size=1_500_000)
    found = asked(home, queries)
    assert found.blame.culprits
    assert all(clustered not in culprit.ids for culprit in found.blame.culprits)


def test_a_clustering_that_narrows_what_is_wide_by_more_than_it_widens_is_innocent(tmp_path):
    home, _ = clustered_and_appended(tmp_path, each=400, appends=0)
    mostly_t = ["x = 5000", *(f"t = {value}" for value in range(500, ROWS, 10_000))]
    assert asked(home, mostly_t).blame.culprits == ()


def test_clustering_appends_anew_blames_nobody(tmp_path):
    home, _ = clustered_and_appended(tmp_path, each=400)
    home.cluster(target_file_size=60_000)
    assert asked(home, BY_X_AND_T).blame.culprits == ()
