"""The ledger of growing tables: its sums are what the tables' own logs say, whoever writes, fails or repeats."""

from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pytest

from support.appends import append_to
from support.cluster_tables import NEWEST, home
from support.ledgers import compact, told_by
from zonal.errors import ZonalError
from zonal.history.store import History
from zonal.layouts.layout import Layout
from zonal.rewriting.scope import Scope
from zonal.tables.registry import read_snapshot, table_of
from zonal.upkeep.account import account_of
from zonal.verbs.show import show

LAYOUT = Layout("zorder", ("ts", "x"), target_file_bytes=12_000)


def day(number, rows=60):
    draw = np.random.default_rng(number)
    ts = number * 1000 + draw.integers(0, 1000, rows)
    return pa.table({"id": number * 1000 + np.arange(rows), "ts": ts, "x": draw.integers(0, 5000, rows)})


def days(first, last, rows=300):
    return pa.concat_tables([day(number, rows) for number in range(first, last)])


def now(table):
    return read_snapshot(table_of(table.name, **table.options))


def ledger(table, database):
    with History.open(database) as history:
        return history.ledger(now(table).location)


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path}/history.db"


@pytest.mark.parametrize("kind", NEWEST)
def test_the_sums_of_a_growing_table_are_what_its_log_says(kind, tmp_path, database):
    table = home(kind, tmp_path).make([days(0, 20)])
    table.cluster(layout=LAYOUT, database=database)
    for number in range(20, 30):
        if number % 4 == 3:
            append_to(table, day(number, 200), database=database)
        else:
            table.append(day(number, 100))
        if number == 24:
            table.table.delete("id >= 21000 AND id < 21050")
        if number == 26:
            compact(table)
        table.cluster(database=database)
        entries = ledger(table, database)
        since = account_of(now(table)).waiting
        sums = sum(each.arrived_bytes for each in entries) + since, sum(each.rewritten_bytes for each in entries)
        assert sums == told_by(table)
        account = account_of(now(table), entries)
        assert (account.arrived, account.rewritten) == sums, "the policy has the same numbers as the ledger"
        assert account == account_of(now(table)), "and needs no history for them"
    assert entries[0].kind == "first"
    after = {"merge", "append"} | ({"first"} if kind == "delta" else set())  # a compaction takes all layouts away
    assert {each.kind for each in entries[1:]} == after
    assert all(each.exact for each in entries)
    assert len({each.run for each in entries}) == len(entries)
    rows = sum(each.arrived_rows for each in entries if each.arrived_rows is not None)
    assert rows >= 6000 + 600


@pytest.mark.parametrize("kind", NEWEST)
def test_a_fresh_layout_is_predicted_to_read_less_the_more_runs_overlap(kind, tmp_path, database):
    table = home(kind, tmp_path).make([days(0, 20)])
    table.cluster(layout=LAYOUT, database=database)
    (first,) = ledger(table, database)
    assert first.lookup_share / first.fresh_lookup_share == pytest.approx(1, abs=0.15), "it is fresh"
    for _ in range(4):  # rows of all times, each append a run of its own
        append_to(table, days(0, 20, 40), database=database)
    ratios = [each.lookup_share / each.fresh_lookup_share for each in ledger(table, database)]
    assert ratios[-1] > 1.2 * ratios[0]


@pytest.mark.parametrize("kind", NEWEST)
def test_a_layout_move_and_a_copy_are_told_apart(kind, tmp_path, database):
    table = home(kind, tmp_path / "a").make([days(0, 20)])
    table.cluster(layout=LAYOUT, database=database)
    table.cluster(layout=replace(LAYOUT, columns=("x",)), scope=Scope(full=True), database=database)
    assert [each.kind for each in ledger(table, database)] == ["first", "layout"]
    other = home("delta", tmp_path / "b")
    table.cluster(layout=LAYOUT, into=other.name, database=database)
    (copy,) = ledger(other, database)
    assert (copy.kind, copy.rewritten_bytes, copy.exact) == ("copy", 0, True)
    assert copy.arrived_bytes == sum(file.size for file in other.files())


class Broken:
    """A runner that can do nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __call__(self, *_):
        raise ZonalError("The power is out.")


@pytest.mark.parametrize("kind", NEWEST)
def test_a_run_that_fails_adds_nothing_and_one_that_wasnt_kept_is_found_later(kind, tmp_path, database):
    table = home(kind, tmp_path).make([days(0, 20)])
    with pytest.raises(ZonalError, match="power"):
        table.cluster(Broken(), layout=LAYOUT, database=database)
    assert ledger(table, database) == ()
    lost = table.cluster(layout=LAYOUT)  # as if its process had died after the commit
    table.append(days(20, 30))
    table.cluster(database=database)
    entries = ledger(table, database)
    assert entries[0].run == lost.run.id
    assert [each.kind for each in entries] == ["rewrite", "merge"]
    assert (sum(e.arrived_bytes for e in entries), sum(e.rewritten_bytes for e in entries)) == told_by(table)


def test_a_history_that_cant_be_written_is_a_note(tmp_path, monkeypatch, database):
    def full(*_):
        raise OSError("disk full")

    table = home("delta", tmp_path).make([days(0, 20)])
    monkeypatch.setattr("zonal.history.store.lock", full)
    done = table.cluster(layout=LAYOUT, database=database)
    assert done.run.versions
    assert "isn't in the history" in done.note
    appended = append_to(table, day(20), database=database)
    assert appended.version is not None
    assert "isn't in the history" in appended.note


@pytest.mark.parametrize("kind", NEWEST)
def test_the_same_run_recorded_twice_is_one_entry(kind, tmp_path, database, monkeypatch):
    table = home(kind, tmp_path).make([days(0, 20)])
    keep = History.keep_ledger

    def twice(self, *given):
        keep(self, *given)
        keep(self, *given)

    monkeypatch.setattr(History, "keep_ledger", twice)
    table.cluster(layout=LAYOUT, database=database)
    append_to(table, day(21), database=database)
    assert [each.kind for each in ledger(table, database)] == ["first", "append"]


def _append(folder, number, database, ready):
    table = home("delta", folder)
    ready.wait(120)
    append_to(table, day(100 + number), database=database)


def test_runs_at_once_are_an_entry_each(tmp_path, database):
    table = home("delta", tmp_path).make([days(0, 20)])
    table.cluster(layout=LAYOUT, database=database)
    spawning = get_context("spawn")
    ready = spawning.Barrier(3)
    others = [spawning.Process(target=_append, args=(tmp_path, number, database, ready)) for number in range(3)]
    for each in others:
        each.start()
    for each in others:
        each.join(180)
    assert [each.exitcode for each in others] == [0, 0, 0]
    entries = ledger(table, database)
    assert [each.kind for each in entries] == ["first", "append", "append", "append"]
    assert (sum(e.arrived_bytes for e in entries), sum(e.rewritten_bytes for e in entries)) == told_by(table)


def forget(table):
    """Let the log forget all but the newest version."""
    if table.format == "delta":
        table.table.create_checkpoint()
        newest = table.version()
        for log in (table.root / "_delta_log").glob("*.json"):
            if int(log.stem) < newest:
                log.unlink()
    else:
        theirs = table.table
        gone = [each.snapshot_id for each in theirs.metadata.snapshots if each.snapshot_id != table.version()]
        theirs.maintenance.expire_snapshots().by_ids(gone).commit()


@pytest.mark.parametrize("kind", NEWEST)
def test_the_ledger_knows_what_the_log_has_forgotten(kind, tmp_path, database):
    table = home(kind, tmp_path).make([days(0, 20)])
    table.cluster(layout=LAYOUT, database=database)
    table.append(days(20, 30))
    table.cluster(database=database)
    told = told_by(table)
    forget(table)
    table.append(day(30))
    arrived = told[0] + account_of(now(table)).waiting
    known = account_of(now(table), ledger(table, database))
    assert (known.arrived, known.rewritten, known.exact) == (arrived, told[1], True)
    alone = account_of(now(table))
    assert not alone.exact
    assert alone.rewritten < told[1]
    health = show(table.name, database=database, **table.options)
    assert health.condition.amplification == known.amplification
    assert health.condition.all_known


@pytest.mark.parametrize("kind", NEWEST)
def test_a_gap_that_nobody_knows_is_told_and_counts_what_is_there(kind, tmp_path, database):
    table = home(kind, tmp_path).make([days(0, 20)])
    first_bytes = sum(file.size for file in table.files())
    table.append(days(20, 30))
    appended = sum(file.size for file in table.files()) - first_bytes
    forget(table)
    table.cluster(layout=LAYOUT, database=database)
    (first,) = ledger(table, database)
    assert not first.exact
    assert first.arrived_bytes == max(appended, sum(file.size for file in table.files()))
