"""`advise` gives sound advice, and its predictions come true when its layout is applied."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import zonal
from support.cluster_tables import home, parts_of
from zonal.advising.advice import Prices
from zonal.advising.compaction import merged
from zonal.advising.costs import cost_of, saved_bytes
from zonal.advising.decidable import decidable
from zonal.advising.layout_search import learn_tree
from zonal.advising.queries import MOST_QUERIES, bind_queries, chosen_queries, halves
from zonal.errors import ZonalError
from zonal.predicates.bind import bind
from zonal.predicates.bound import leaves_of
from zonal.snapshot import Bounds, LazyBounds, table_names
from zonal.sql.where import parse_where
from zonal.study.advice_request import request_of
from zonal.tables.registry import open_table, read_snapshot
from zonal.trials.today import current
from zonal.verbs.advise import advise
from zonal.workload.query import Query, Summary, Workload

ROWS = 120_000
SMALL = 40_000
SECRET = 918_273_645


def events(rows=ROWS, seed=0):
    """Rows in random order: a time, a tenant of which a few have most rows, an amount, a region."""
    draw = np.random.default_rng(seed)
    tenants = draw.zipf(1.4, rows) % 2000
    return pa.table(
        {
            "time": pa.array(draw.integers(0, 1_000_000, rows)),
            "tenant": pa.array(tenants),
            "amount": pa.array(np.round(np.exp(draw.normal(3, 1.5, rows)), 2)),
            "region": pa.array(draw.choice(["eu", "us", "asia"], rows).tolist()),
        }
    )


def dashboards(count=60, seed=1):
    """Queries of a few kinds with their own values."""
    draw = np.random.default_rng(seed)
    texts = []
    for number in range(count):
        start = int(draw.integers(0, 950_000))
        ranged = f"time BETWEEN {start} AND {start + int(draw.integers(5_000, 40_000))}"
        tenant = int(draw.integers(1, 300))
        low = round(float(draw.uniform(1, 200)), 2)
        kinds = ranged, f"tenant = {tenant} AND {ranged}", f"tenant = {tenant}", f"amount >= {low} AND {ranged}"
        texts.append(kinds[number % 4])
    return texts


def shares_of(name, options, texts):
    """What each query reads of the table as it is."""
    snapshot = read_snapshot(open_table(name, **options))
    bounds = [bind(parse_where(text), snapshot.schema) for text in texts]
    return current(snapshot, bounds, np.ones(len(bounds)))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_the_advised_layout_brings_what_was_predicted(tmp_path, kind):
    table = home(kind, tmp_path).make(parts_of(events(), 12))
    workload = Workload.of(dashboards())
    advice = advise(table.name, queries=workload, target_file_size=SMALL, per_day=1e6, **table.options)
    assert advice.verdict == "cluster"
    assert advice.now.bytes > 0.9, "rows in random order skip nothing"
    layout = advice.best.layout
    assert layout is not None
    before = shares_of(table.name, table.options, dashboards())
    table.cluster(layout=layout)
    after = shares_of(table.name, table.options, dashboards())
    schema = read_snapshot(open_table(table.name, **table.options)).schema
    asked, _ = bind_queries(workload, np.ones(60), schema, data=None, timezone="UTC", seed=0)
    held = halves(asked, 0)[1]
    measured = float(after.shares[held].mean())
    assert measured < before.mean / 2
    assert abs(measured - advice.best.reads.bytes) <= max(0.15 * measured, 0.03)


def test_a_table_in_a_good_layout_is_left_alone(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(), 12))
    workload = Workload.of(dashboards())
    first = advise(table.name, queries=workload, target_file_size=SMALL, per_day=1e6)
    table.cluster(layout=first.best.layout)
    second = advise(table.name, queries=workload, target_file_size=SMALL, per_day=1e6)
    assert second.verdict == "leave"
    assert second.best.kind == "leave"
    assert second.best.layout is None
    assert second.best is second.candidates[0]
    assert abs(second.now.bytes - first.best.reads.bytes) <= max(0.15 * second.now.bytes, 0.03)


def test_a_layout_that_saves_less_than_it_costs_is_left(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(30_000), 6))
    asked = {"queries": Workload.of(dashboards()), "target_file_size": SMALL // 4}
    assert advise(table.name, **asked, per_day=1e6).verdict == "cluster"
    rarely = advise(table.name, **asked, per_day=1e-6)
    assert rarely.verdict == "leave"
    assert "days to pay back" in rarely.reason
    assert rarely.candidates[1].gain > 0.15, "the gain alone would be enough"
    free = advise(table.name, **asked, prices=zonal.Prices(scan=0.0))
    assert free.verdict == "leave"
    assert "saves nothing" in free.reason


def test_advice_is_the_same_every_time(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(20_000), 5))
    asked = {"queries": Workload.of(dashboards(24)), "target_file_size": 20_000, "sampling": zonal.Sampling(seed=3)}
    one, other = (advise(table.name, **asked) for _ in range(2))
    assert [(c.text, c.layout, c.reads) for c in one.candidates] == [
        (c.text, c.layout, c.reads) for c in other.candidates
    ]
    assert one.warnings == other.warnings


def test_candidates_have_intervals_costs_and_counts(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(60_000), 8))
    texts = [f"region = 'eu' AND {text}" for text in dashboards()]
    advice = advise(table.name, queries=Workload.of(texts), target_file_size=SMALL, per_day=100.0)
    kinds = [candidate.kind for candidate in advice.candidates]
    assert {"leave", "linear", "zorder", "hilbert", "tree", "partition"} <= set(kinds)
    assert advice.workload.held_out == 30
    assert advice.workload.queries == 60
    for candidate in advice.candidates:
        reads = candidate.reads
        assert 0 <= reads.low <= reads.bytes <= reads.high <= 1
        assert reads.row_groups is not None
        assert reads.row_groups <= reads.bytes + 1e-9
        assert candidate.gain == pytest.approx(1 - reads.bytes / advice.now.bytes, abs=1e-6)
        if candidate.kind != "leave":
            assert candidate.cost.bytes == advice.table.bytes
            assert candidate.cost.core_seconds > 0
            assert candidate.cost.storage_price == pytest.approx(advice.table.bytes / 1e9 * 0.023 * 7 / 30)
        assert (candidate.layout is None) == (candidate.kind in ("leave", "partition"))
    partition = next(candidate for candidate in advice.candidates if candidate.kind == "partition")
    assert "doesn't repartition" in partition.note


def test_queries_that_get_worse_are_listed(tmp_path):
    data = events(60_000).sort_by("amount")
    table = home("delta", tmp_path).make(parts_of(data, 30))
    draw = np.random.default_rng(5)
    often = [f"time BETWEEN {at} AND {at + 20_000}" for at in draw.integers(0, 900_000, 36).tolist()]
    seldom = [f"amount BETWEEN {at} AND {at + 0.5}" for at in draw.uniform(5, 60, 12).round(2).tolist()]
    advice = advise(table.name, queries=Workload.of([*often, *seldom]), target_file_size=SMALL, per_day=1e6)
    sort = next(c for c in advice.candidates if c.layout is not None and c.layout.columns == ("time",))
    assert sort.worse_count == 6, "half of the queries on the column by which the table is sorted now"
    assert len(sort.worse) == 5
    losses = [worse.after - worse.before for worse in sort.worse]
    assert losses == sorted(losses, reverse=True)
    assert min(losses) > 0.5
    assert all(worse.query.startswith("amount >= ") for worse in sort.worse)
    assert all(worse.source.startswith("condition ") for worse in sort.worse)


@pytest.mark.parametrize("hide", [True, False])
def test_hidden_literals_are_nowhere_in_the_advice(tmp_path, hide):
    data = events(40_000).sort_by("amount")
    table = home("delta", tmp_path / "t").make(parts_of(data, 20))
    log = tmp_path / "log.sql"
    texts = [f"SELECT * FROM t WHERE time >= {SECRET + at * 1000 - 918_000_000};" for at in range(10)]
    texts += [f"SELECT * FROM t WHERE amount = {at}.{SECRET};" for at in range(10)]
    texts += [f"SELECT * FROM t WHERE time LIKE {SECRET};", f"SELEKT {SECRET} FROM FROM t;"]
    texts += [f"SELECT * FROM t WHERE strange(time) = {SECRET};"] * 20
    log.write_text("\n".join(texts))
    advice = advise(table.name, queries=[log], target_file_size=SMALL, display=zonal.Display(hide_literals=hide))
    assert any(candidate.worse for candidate in advice.candidates), "queries are shown at all"
    assert "opaque-filters" in {warning.code for warning in advice.warnings}
    assert (str(SECRET) in repr(advice)) != hide


def test_few_queries_are_all_learned_from(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(20_000), 5))
    advice = advise(table.name, queries=Workload.of(dashboards(5)), target_file_size=20_000)
    assert advice.workload.queries == advice.workload.held_out == 5
    assert "few-queries" in {warning.code for warning in advice.warnings}


@pytest.mark.parametrize(
    ("texts", "rows", "reason"),
    [
        ([], 1000, "The logs hold no statement"),
        (["time = 1"], 0, "no files"),
        (["nothing = 3"], 1000, "No query fits its columns. Unknown column 'nothing'"),
    ],
)
def test_a_table_that_tells_too_little_gets_an_advice_that_says_so(tmp_path, texts, rows, reason):
    table = home("delta", tmp_path).make([events(rows)])
    advice = advise(table.name, queries=Workload.of(texts))
    assert advice.verdict == "unknown"
    assert advice.best is None
    assert advice.candidates == ()
    assert reason in advice.reason


def test_a_workload_of_full_scans_is_left_alone(tmp_path):
    table = home("delta", tmp_path).make([events(1000)])
    for texts in (["TRUE"], ["TRUE", "strange(amount) = 3", "time IS NOT NULL"]):
        advice = advise(table.name, queries=Workload.of(texts), target_file_size=1000)
        assert advice.verdict == "leave"
        assert "no query filters" in advice.reason
        assert [candidate.kind for candidate in advice.candidates] == ["leave"]
        assert advice.now.bytes == 1.0
        assert "full-scans" in {warning.code for warning in advice.warnings}


def test_a_table_without_rows_left_or_with_broken_files_gets_an_advice(tmp_path):
    table = home("parquet", tmp_path).make(parts_of(events(1000), 2))
    opened = open_table(table.name)
    snapshot = opened.snapshot()
    for path in table.root.rglob("*.parquet"):
        path.write_bytes(b"nothing")
    opened.snapshot = lambda *_: snapshot
    advice = advise(opened, queries=Workload.of(["time = 3"]))
    assert advice.verdict == "unknown"
    assert "can't be read" in advice.reason


def test_a_table_of_which_only_metadata_can_be_read_gets_an_advice(tmp_path):
    table = open_table(home("delta", tmp_path).make([events(1000)]).name)

    class Told:
        name = table.name
        snapshot = staticmethod(table.snapshot)
        open_file = staticmethod(table.open_file)

    assert "can't be read" in advise(Told(), queries=Workload.of(["time = 3"])).reason


def test_logs_are_read_by_the_tables_own_name(tmp_path):
    table = home("delta", tmp_path / "lake", name="orders").make(parts_of(events(20_000), 4))
    log = tmp_path / "log.sql"
    log.write_text("".join(f"SELECT * FROM shop.orders o WHERE {text};\n" for text in dashboards(16)))
    heard = []
    advice = advise(table.name, queries=log, target_file_size=20_000, progress=lambda step: heard.append(step.name))
    assert advice.workload.summary.matched == 16
    assert heard[0] == "reading the table's metadata"
    assert "sampling" in heard
    assert "16 scans count as a day's" in advice.basis.assumptions[0]
    assert advice.workload.per_day == 16
    assert table_names(read_snapshot(open_table(table.name))) == ["orders"]


def test_partitioned_tables_keep_their_partition_column_out_of_the_layout(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(40_000), 4), partition_by=["region"])
    texts = [f"region = 'eu' AND {text}" for text in dashboards(40)]
    advice = advise(table.name, queries=Workload.of(texts), target_file_size=20_000, per_day=1e6)
    assert advice.partition_only.bytes == pytest.approx(1 / 3, abs=0.03)
    assert advice.best.layout is not None
    for candidate in advice.candidates:
        assert candidate.layout is None or "region" not in candidate.layout.columns
        assert candidate.reads.bytes <= 0.36
    assert next(each for each in advice.workload.filtered if each.column == "region").partitions
    table.cluster(layout=advice.best.layout)
    assert len(table.files()) >= 3


def test_of_many_partitions_some_stand_for_all(tmp_path):
    draw = np.random.default_rng(0)
    rows = 40_000
    data = pa.table(
        {"day": pa.array(np.arange(rows) // 100), "x": draw.integers(0, 1000, rows), "y": draw.integers(0, 1000, rows)}
    )
    table = home("delta", tmp_path).make([data], partition_by=["day"])
    texts = [f"day BETWEEN {day} AND {day + 9} AND x < 500" for day in range(0, 390, 13)]
    advice = advise(table.name, queries=Workload.of(texts))
    assert advice.partition_only.bytes == pytest.approx(10 / 400, rel=0.1)
    for candidate in advice.candidates:
        if candidate.layout is not None:
            assert candidate.reads.bytes == pytest.approx(10 / 400, rel=0.15), "a partition is one file"
            assert candidate.files == pytest.approx(400, rel=0.05)


class Many:
    """A table with each file of another one many times; it tells what was decoded and which files were read."""

    def __init__(self, table, times):
        self.table, self.name = table, table.name
        self.one = read_snapshot(table)
        files, self.count = self.one.files, len(self.one.files)
        at = np.tile(np.arange(self.count), times)
        self.decoded, self.scanned = set(), []
        copies = replace(
            files,
            paths=files.paths.take(pa.array(at)),
            sizes=np.full(len(at), 128 * 1024**2),
            rows=files.rows[at],
            deleted=files.deleted[at],
            delete_files=files.delete_files[at],
            added_by=files.added_by[at],
            layout_ids=files.layout_ids.take(pa.array(at)),
            partition=files.partition[at],
            bounds=LazyBounds({name: partial(self._decode, name, at) for name in files.bounds}),
        )
        self.whole = replace(self.one, files=copies)

    def _decode(self, name, at):
        self.decoded.add(name)
        bounds, rows = self.one.files.bounds[name], pa.array(at)
        return Bounds(bounds.lower.take(rows), bounds.upper.take(rows), bounds.nulls[at], bounds.nans[at])

    def snapshot(self):
        return self.whole

    def open_file(self, path):
        return self.table.open_file(path)

    def scan(self, snapshot, files, *, columns=None):
        assert snapshot is self.whole
        self.scanned += files.tolist()
        found = self.table.scan(self.one, np.unique(files % self.count), columns=columns)
        by_number = {source.number: source for source in found.sources}
        sources = [replace(by_number[file % self.count], number=file) for file in files.tolist()]
        return replace(found, sources=tuple(sources))


def test_of_a_large_table_few_files_are_read_and_only_filtered_columns_decoded(tmp_path):
    table = Many(open_table(home("delta", tmp_path).make(parts_of(events(8000), 8)).name), 2500)
    advice = advise(table, queries=Workload.of(dashboards(100)), target_file_size=8000)
    assert advice.table.files == 20_000
    assert table.decoded == {"time", "tenant", "amount"}
    assert len(table.scanned) <= 256 + 3
    assert advice.basis.sample_rows <= 60_000
    assert advice.best.extrapolated
    assert advice.best.files > 10_000


def test_parameters_get_values_of_the_table(tmp_path):
    table = home("delta", tmp_path / "t").make(parts_of(events(40_000), 4))
    log = tmp_path / "log.sql"
    log.write_text("".join(f"SELECT c{at} FROM t WHERE tenant = ? AND time > {at};\n" for at in range(12)))
    advice = advise(table.name, queries=zonal.Logs([log], dialect="spark"), target_file_size=20_000, per_day=1e6)
    assert "parameters" in {warning.code for warning in advice.warnings}
    best = advice.best.layout or advice.candidates[1].layout
    assert best.columns[0] == "tenant"


def test_bloom_filters_are_advised_for_look_ups_outside_of_the_layout(tmp_path):
    draw = np.random.default_rng(0)
    rows = 60_000
    keys = draw.permutation(rows) * 7
    data = pa.table({"time": draw.integers(0, 1_000_000, rows), "key": keys, "few": draw.integers(0, 4, rows)})
    data = data.append_column("number", data["key"].cast(pa.float64()))
    table = home("delta", tmp_path).make(parts_of(data, 6))
    texts = [f"time BETWEEN {at} AND {at + 9000}" for at in draw.integers(0, 900_000, 40).tolist()]
    texts += [f"key = {key}" for key in keys[:8].tolist()]
    texts += [f"number = {key}" for key in keys[:8].tolist()]
    texts += ["few = 3"]
    advice = advise(table.name, queries=Workload.of(texts), target_file_size=SMALL, per_day=1e6)
    (bloom,) = advice.blooms
    assert bloom.column == "key", "the one column that has many values and is asked for single ones, but for floats"
    assert bloom.after < 0.2 < bloom.before
    assert bloom.weight == pytest.approx(8 / 57)
    assert [each.column for each in advice.blooms] == ["key"]
    assert advice.best.layout.bloom_columns == ()


def test_a_tree_is_learned_again_from_the_same_sample(tmp_path):
    opened = open_table(home("delta", tmp_path).make(parts_of(events(40_000), 4)).name)
    request = request_of(opened, read_snapshot(opened), Workload.of(dashboards(20)), target_file_size=20_000)
    one, other = (learned(request.ground()) for _ in range(2))
    assert one == other
    assert one.kind == "tree"
    assert one.target_file_bytes == 20_000
    assert learned(request.ground(), columns=()) is None


def learned(ground, columns=("time", "tenant")):
    return learn_tree(
        ground.sample,
        ground.asked.bounds,
        columns=columns,
        target_file_bytes=ground.target_file_bytes,
        row_group_rows=ground.row_group_rows,
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"prices": zonal.Prices(scan=-1.0)}, "prices=Prices(scan=-1.0)"),
        ({"per_day": 0.0}, "per_day=0.0"),
        ({"sampling": zonal.Sampling(rows=0)}, "sampling=Sampling(rows=0)"),
        ({"target_file_size": 0}, "target_file_size=0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_by_name(tmp_path, wrong, told):
    table = home("delta", tmp_path).make([events(100)])
    with pytest.raises(ZonalError, match=re.escape(told)):
        advise(table.name, queries=Workload.of(["time = 1"]), **wrong)


# --- parts -----------------------------------------------------------------------------------------------------------


def workload_of(queries):
    return Workload(tuple(queries), Summary(len(queries), len(queries), len(queries), 0, 0, 0))


def test_of_too_many_queries_the_heaviest_stay_and_others_stand_for_the_rest():
    predicate = parse_where("time = 1")
    queries = [Query(predicate, float(1 + (at < 10) * 100), 2) for at in range(3 * MOST_QUERIES)]
    kept, runs, left_out = chosen_queries(workload_of(queries), 0)
    assert len(kept.queries) == len(runs) == MOST_QUERIES
    assert left_out == 2 * MOST_QUERIES
    assert sum(query.weight for query in kept.queries) == pytest.approx(sum(query.weight for query in queries))
    assert runs.sum() == pytest.approx(6 * MOST_QUERIES)
    assert sum(query.weight == 101.0 for query in kept.queries) == 10


def test_halves_share_every_kind_of_query():
    texts = [f"time = {at}" for at in range(20)] + [f"tenant = {at}" for at in range(6)]
    schema = events(1).schema
    asked, _ = bind_queries(Workload.of(texts), np.ones(26), schema, data=None, timezone="UTC", seed=0)
    learn, held = halves(asked, 0)
    assert sorted([*learn, *held]) == list(range(26))
    assert sum(number >= 20 for number in learn) == sum(number >= 20 for number in held) == 3


def test_ranges_that_no_file_can_exclude_are_anything_and_others_stay():
    schema = events(1).schema
    bound = bind(parse_where("tenant = 1 AND (amount > 5 OR time > 3 AND amount < 2)"), schema)
    left = decidable(bound, {"amount"})
    assert [type(leaf).__name__ for leaf in leaves_of(left)] == ["Ranges", "Anything", "Ranges", "Ranges"]
    assert decidable(bound, set()) == bound


def test_savings_follow_the_bytes_that_the_log_tells():
    schema = events(1).schema
    queries = [Query(parse_where("time = 1"), 1.0, 3, bytes=1000), Query(parse_where("time = 2"), 1.0, 1)]
    asked, _ = bind_queries(workload_of(queries), np.array([3.0, 1.0]), schema, data=None, timezone="UTC", seed=0)
    before, after = np.array([0.5, 0.5]), np.array([0.25, 0.5])
    saved = saved_bytes(asked, before, after, table_bytes=10**9, per_day=8.0)
    assert saved == pytest.approx(8 / 4 * 3 * 500), "six runs a day read half of their 1,000 bytes"
    told_nothing = saved_bytes(asked, before, np.array([0.5, 0.25]), table_bytes=10**9, per_day=8.0)
    assert told_nothing == pytest.approx(2 * 0.25 * 10**9)


def test_a_rewrite_pays_back_by_what_it_saves_a_day():
    prices = Prices(scan=5.0, core_hour=0.1, storage=0.03, keep_days=10.0)
    cost = cost_of(rewritten_bytes=10**12, rewritten_rows=3.6e9, row_seconds=1e-6, saved_per_day=10**12, prices=prices)
    assert cost.core_seconds == pytest.approx(3600)
    assert cost.rewrite_price == pytest.approx(0.1)
    assert cost.storage_price == pytest.approx(10.0)
    assert cost.payback_days == pytest.approx(10.1 / 5)
    worse = cost_of(rewritten_bytes=1, rewritten_rows=1, row_seconds=1, saved_per_day=-5.0, prices=prices)
    assert worse.payback_days is None


def test_larger_files_have_the_bounds_of_all_their_parts(tmp_path):
    table = home("delta", tmp_path).make(parts_of(events(4000), 20))
    snapshot = read_snapshot(open_table(table.name))
    after = merged(snapshot, int(snapshot.files.sizes.sum()) // 4, ["time", "region"])
    assert after is not None
    files = after.snapshot.files
    assert 3 <= len(files) <= 5
    assert files.sizes.sum() == snapshot.files.sizes.sum()
    assert files.rows.sum() == 4000
    assert len(after.rewritten) == 20
    for name in ("time", "region"):
        new: Bounds = files.bounds[name]
        old = snapshot.files.bounds[name]
        assert min(new.lower.to_pylist()) == min(old.lower.to_pylist())
        assert max(new.upper.to_pylist()) == max(old.upper.to_pylist())
        assert new.lower.type == old.lower.type
    assert merged(snapshot, 1, ["time"]) is None, "files that are large enough stay"
