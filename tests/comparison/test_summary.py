"""Medians, ratios and losses of the comparison with peers, on made-up results."""

import pytest

results = pytest.importorskip("benchmarks.comparison.results", reason="the benchmarks are not here")
summary = pytest.importorskip("benchmarks.comparison.summary")
page = pytest.importorskip("benchmarks.comparison.page")
figure = pytest.importorskip("benchmarks.comparison.figure")
smoke = pytest.importorskip("benchmarks.comparison.smoke")
trial = pytest.importorskip("benchmarks.comparison.trial")
course = pytest.importorskip("benchmarks.comparison.course")
workloads = pytest.importorskip("benchmarks.comparison.workloads")
Query = pytest.importorskip("benchmarks.rewriters.judge").Query


def rewrite(system, cpu, *, repetition=0, files=10, size=50_000_000, first=None):
    return results.Rewrite(
        "lineitem", system, repetition, cpu, cpu / 2, cpu + 1, 10**9, 5_000_000, files, size, first, 0.5
    )


def read(system, by_files):
    return results.ReadCost("lineitem", system, by_files, by_files / 2, by_files / 4, {"days": by_files})


def query_time(system, *cpus, engine="duckdb"):
    passes = tuple(results.Pass(cpu, cpu, 8_000_000) for cpu in cpus)
    return results.QueryTime("lineitem", system, engine, 4, passes)


@pytest.fixture
def measured():
    """Two systems of zonal's, of which one loses in CPU and both in nothing else, and two peers."""
    found = results.Results({"cores": 2, "memory_gib": 8, "processor": "one"}, {"zonal": "1"}, ("run",), "2026-01-01")
    for record in (
        results.Table("lineitem", 0.1, 1000, 10, 50_000_000, ("l_shipdate",), 5, 5, 4),
        rewrite("unclustered", 0.0),
        rewrite("delta-rs", 4.0),
        rewrite("spark-sort", 9.0),
        *(rewrite("zonal-here", cpu, repetition=at, first=14) for at, cpu in enumerate((3.0, 2.0, 7.0))),
        rewrite("zonal-delta-zorder", 6.0),
        read("unclustered", 40e6),
        read("delta-rs", 20e6),
        read("zonal-here", 10e6),
        read("zonal-delta-zorder", 10e6),
        query_time("unclustered", 4.0, 8.0, 5.0),
        query_time("zonal-here", 2.0),
        results.Failure("lineitem", "delta-rs", "duckdb", "first line\nit | broke"),
    ):
        found = found.with_(record)
    return found


def test_results_survive_their_file(measured):
    assert results.Results.from_json(measured.to_json()) == measured


def test_a_record_replaces_its_own_kind_and_a_success_its_failure(measured):
    again = measured.with_(rewrite("delta-rs", 5.0))
    assert len(again.rewrites) == len(measured.rewrites)
    assert again.failures == measured.failures, "the queries still fail"
    assert again.with_(query_time("delta-rs", 1.0)).failures == ()


def test_repetitions_count_by_their_median_and_queries_by_their_mean(measured):
    values = summary.values_of(measured, "lineitem")
    assert values[summary.CPU]["zonal-here"] == 3.0
    assert values[summary.engine_measures("duckdb")[0]]["unclustered"] == 5.0 / 4 * 1000
    assert next(iter(values[summary.CPU])) == "unclustered", "in the order of systems"


def test_spread_is_a_share_of_the_median():
    assert summary.spread([2.0, 3.0, 7.0]) == pytest.approx(5 / 3)
    assert summary.spread([4.0]) == 0.0
    assert summary.spread([0.0]) == 0.0


def test_every_measure_that_a_peer_wins_is_a_loss_and_no_other(measured):
    (cpu, wall) = summary.losses(measured)
    assert (cpu.measure, wall.measure) == (summary.CPU, summary.WALL)
    assert (cpu.peer, cpu.best, cpu.out_of) == ("delta-rs", 4.0, 2), (
        "a table that is left alone is no peer in rewriting"
    )
    assert cpu.losers == {"zonal-delta-zorder": 1.5}


def test_in_reading_the_table_as_it_arrived_is_a_peer(measured):
    worse = measured.with_(query_time("unclustered", 1.0))
    losses = {loss.measure.name: loss for loss in summary.losses(worse)}
    assert losses["duckdb, CPU a query"].losers == {"zonal-here": 2.0}


def test_ratios_are_of_the_best_on_each_side(measured):
    ratios = summary.best_ratios(measured)
    assert ratios[summary.CPU] == {"lineitem": 3.0 / 4.0}
    assert ratios[summary.BY_FILES] == {"lineitem": 0.5}


def test_the_page_has_all_systems_losses_and_failures(measured, tmp_path):
    (tmp_path / "benchmarks.md").write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write_docs(measured, tmp_path)
    text = (tmp_path / "benchmarks.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| zonal zorder, Delta, no Spark | 10 (14) | 3.00 | 83 |" in text
    assert "| lineitem | rewrite, CPU | delta-rs z_order | 4 s | 1 of 2 | zorder, Delta 1.50 |" in text
    assert r"it \| broke" in text
    assert "off 10 files" not in text
    assert "<circle" in (tmp_path / "benchmarks.svg").read_text()
    assert "0.40</text>" in (tmp_path / "benchmarks-queries.svg").read_text(), "zonal's queries against the others'"
    assert results.Results.read(tmp_path / "benchmarks.json") == measured


def test_the_page_says_who_made_too_many_files(measured):
    text = page.measured(measured.with_(rewrite("delta-rs", 4.0, files=12)))
    assert "off 10 files even so: delta-rs z_order (12)." in text


def test_a_smoke_run_compares_with_the_peer_and_with_the_table_as_it_arrived(measured):
    ratios = dict(smoke.ratios(summary.values_of(measured, "lineitem")))
    assert ratios["rewrite, CPU: zonal-here / delta-rs"] == 0.75
    assert ratios["read a query, by files: zonal-here / unclustered"] == 0.25
    assert "rewrite, CPU: zonal-here / unclustered" not in ratios


def test_a_target_size_is_corrected_in_proportion():
    assert trial.corrected(1000, found=30, wanted=20) == 1500


def test_commands_are_kept_without_the_places_of_a_machine():
    assert course._without_places(["--sets", "wide", "--json", "/a", "--folder=/b", "--repeat", "2"]) == [
        "--sets", "wide", "--repeat", "2",
    ]  # fmt: skip


def test_timed_queries_take_turns_over_kinds():
    held_out = tuple(Query(kind, str(at)) for at, kind in enumerate("aaabbc"))
    assert [query.kind for query in workloads.Workload((), held_out).timed(4)] == ["a", "b", "c", "a"]


@pytest.mark.parametrize("largest", [0.003, 0.7, 1.0, 9.9, 10.0, 4321.0])
def test_axes_have_a_few_round_marks(largest):
    marks = figure.marks(largest)
    assert 4 <= len(marks) <= 11
    assert marks[0] == 0
    assert largest * 0.75 <= marks[-1] <= largest * 1.0001
