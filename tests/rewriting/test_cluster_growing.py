"""Tables that grow: daily and hourly appends with late rows, updates and deletes, kept by runs of `cluster`."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from support.cluster_tables import NEWEST, assert_same_rows, home
from zonal.layouts.layout import Layout
from zonal.rewriting.scope import Scope
from zonal.tables.registry import read_snapshot, table_of
from zonal.upkeep.account import account_of
from zonal.upkeep.condition import condition_of
from zonal.verbs.show import health_of

LAYOUT = Layout("zorder", ("ts", "x"), target_file_bytes=20_000)


def day(number, rows=60, *, late=0):
    """Rows of one day; `late` of them are of some day before."""
    draw = np.random.default_rng(number)
    ts = number * 1000 + draw.integers(0, 1000, rows)
    ts[:late] = draw.integers(0, max(number, 1) * 1000, late)
    return pa.table({"id": number * 1000 + np.arange(rows), "ts": ts, "x": draw.integers(0, 5000, rows)})


def refuse(*_, **__):
    raise AssertionError("nothing is due: no runner may start")


def now(table):
    return read_snapshot(table_of(table.name, **table.options))


@pytest.mark.parametrize("kind", NEWEST)
def test_a_table_is_kept_while_rows_arrive_late_and_are_deleted(kind, tmp_path):
    rows = pa.concat_tables([day(number, 300) for number in range(20)])
    table = home(kind, tmp_path).make([rows])
    table.cluster(layout=LAYOUT)
    runs = 0
    for number in range(20, 32):
        more = day(number, late=number % 3 * 5)
        table.append(more)
        rows = pa.concat_tables([rows, more])
        if number % 8 == 0:
            table.table.delete(f"id >= {(number - 3) * 1000} AND id < {(number - 3) * 1000 + 20}")
            gone = (number - 3) * 1000
            rows = rows.filter([not gone <= each < gone + 20 for each in rows["id"].to_pylist()])
        done = table.cluster()
        runs += bool(done.run.versions)
        assert_same_rows(table.rows(), rows)
        again = table.cluster(runner=refuse)
        assert not again.run.versions, "a second run finds nothing to do"
    account = account_of(now(table))
    assert account.amplification <= 3
    assert 2 <= runs <= 9, "most days wait, and some are merged"
    condition = condition_of(now(table), LAYOUT)
    assert condition.share_in_layout > 0.7
    assert not condition.due
    assert not table.strays()


@pytest.mark.parametrize("kind", NEWEST)
def test_three_layouts_one_after_the_other_and_back(kind, tmp_path):
    rows = pa.concat_tables([day(number, 300) for number in range(20)])
    table = home(kind, tmp_path).make([rows])
    table.cluster(layout=LAYOUT)
    for layout in (replace(LAYOUT, columns=("x",)), replace(LAYOUT, kind="hilbert"), LAYOUT):
        done = table.cluster(layout=layout, full=True)
        assert done.run.versions
        assert not table.cluster(layout=layout, runner=refuse).run.versions
        assert_same_rows(table.rows(), rows)
    other = replace(LAYOUT, columns=("x", "ts"))
    kept = table.cluster(layout=other, runner=refuse)
    assert not kept.run.versions, "the same columns in another order skip no more"
    assert "another layout" in kept.note
    health = health_of(now(table))
    assert health.condition is not None
    assert (health.condition.share_in_layout, health.condition.share_in_others) == (0.0, 1.0)
    assert not table.cluster(layout=LAYOUT, runner=refuse).run.versions, "going back costs nothing"
    assert health_of(now(table)).condition.share_in_layout == 1.0


def test_a_dry_run_names_what_it_would_merge_and_what_not(tmp_path):
    table = home("delta", tmp_path).make([pa.concat_tables([day(number, 300) for number in range(20)])])
    plan = table.plan(layout=LAYOUT)
    assert plan.merging.merges
    assert "most bytes are not clustered yet" in plan.merging.merges[0]
    table.cluster(layout=LAYOUT)
    table.append(day(20, 10))
    plan = table.plan()
    assert not plan.change.files
    assert "wait until there are" in plan.note
    assert plan.merging.not_taken


@pytest.mark.parametrize(("given", "message"), [("soon", "neither a number of scans"), ("20", "judged by queries")])
def test_terms_that_mean_nothing_are_refused(given, message, tmp_path):
    table = home("delta", tmp_path).make([day(1)])
    with pytest.raises(Exception, match=message):
        table.cluster(layout=LAYOUT, scope=Scope(pays_within=given))
    with pytest.raises(Exception, match="max_amplification"):
        table.cluster(layout=LAYOUT, scope=Scope(max_amplification=0.5))
