"""Entries of a ledger, whoever keeps them when: every commit counts once, in whatever order runs are kept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commit_lines import RUNS, commit, histories, snapshot_of
from support.growing_table import ROW_BYTES, GrowingTable
from zonal.layouts.layout import Layout
from zonal.rewriting.done import Done, RewrittenFiles
from zonal.rewriting.ledger import LedgerEntry
from zonal.snapshot import Physical
from zonal.upkeep.account import account_of
from zonal.upkeep.freshness import lookup_shares
from zonal.upkeep.tallies import tallies_of

LAYOUT = Layout("zorder", ("ts",))


def kept(ledger, commits, run, newest):
    """Keep a run in a ledger, as it sees the table at some version."""
    after = snapshot_of(commits, newest)
    versions = next(each.versions for each in tallies_of(after).runs if each.run == run)
    entry = LedgerEntry(run, "merge", Done(versions, RewrittenFiles(removed_files=3)), LAYOUT, after)
    return ledger | {record.run: record for record in entry.entries(list(ledger.values()))}


@given(histories(), st.data())
def test_each_byte_is_in_one_entry_in_whatever_order_runs_are_kept(commits, data):
    ledger = {}
    for newest in data.draw(st.lists(st.integers(0, len(commits) - 1), max_size=6)):
        seen = [each.run for each in tallies_of(snapshot_of(commits, newest)).runs]
        if seen and newest >= max((record.version for record in ledger.values()), default=0):
            ledger = kept(ledger, commits, data.draw(st.sampled_from(seen)), newest)
    last = [each.run for each in tallies_of(snapshot_of(commits)).runs]
    if not last:
        return
    ledger = kept(ledger, commits, data.draw(st.sampled_from(last)), len(commits) - 1)
    whole = account_of(snapshot_of(commits))
    assert sorted(ledger) == sorted(last)
    assert sum(each.arrived_bytes for each in ledger.values()) == whole.arrived - whole.waiting
    assert sum(each.rewritten_bytes for each in ledger.values()) == whole.rewritten
    assert all(each.exact for each in ledger.values())
    again = kept(ledger, commits, last[0], len(commits) - 1)
    for name in ("arrived_bytes", "rewritten_bytes", "commits", "version"):
        assert [getattr(again[run], name) for run in last] == [getattr(ledger[run], name) for run in last], "kept twice"


@given(histories(), st.data())
def test_a_ledger_goes_on_where_commits_have_expired(commits, data):
    """A log that forgets commits that the ledger has loses nothing."""
    seen = data.draw(st.integers(0, len(commits) - 1))
    runs = [each.run for each in tallies_of(snapshot_of(commits, seen)).runs]
    last = [each.run for each in tallies_of(snapshot_of(commits)).runs]
    if not runs:
        return
    ledger = kept({}, commits, runs[0], seen)
    first = data.draw(st.integers(0, max(record.version for record in ledger.values()) + 1))
    left = commits[first:]
    if left and (mine := [each.run for each in tallies_of(snapshot_of(left, len(commits) - 1)).runs]):
        ledger = kept(ledger, left, mine[-1], len(commits) - 1)
        whole = account_of(snapshot_of(commits))
        assert sorted(ledger) == sorted(last)
        assert sum(each.arrived_bytes for each in ledger.values()) == whole.arrived - whole.waiting
        assert sum(each.rewritten_bytes for each in ledger.values()) == whole.rewritten
        assert all(each.exact for each in ledger.values())


def test_a_run_whose_commits_have_expired_already_knows_itself():
    commits = [commit(5, "append", 70), commit(6, "append", 30)]
    done = Done((4,), RewrittenFiles(added_bytes=900, added_files=2, removed_files=3))
    entry = LedgerEntry(RUNS[0], "merge", done, LAYOUT, snapshot_of(commits, 6))
    (own,) = entry.entries([])
    assert (own.rewritten_bytes, own.exact, own.version) == (900, False, 4)
    assert own.arrived_bytes == 1000 - 100, "what is in the table, but for what arrived since"


@pytest.mark.parametrize("run", RUNS[:2])
def test_a_ledger_of_an_older_table_in_the_same_place_counts_for_nothing(run):
    old = kept({}, [commit(0, "append", 5000), commit(1, "zonal", 5000, RUNS[0])], RUNS[0], 1)
    commits = [commit(0, "append", 100), commit(1, "append", 20), commit(2, "zonal", 120, run)]
    ledger = kept(old, commits, run, 2)
    assert (ledger[run].arrived_bytes, ledger[run].rewritten_bytes) == (120, 120)
    account = account_of(snapshot_of(commits), list(ledger.values()))
    assert (account.arrived, account.rewritten) == (120, 120)


def test_a_fresh_layout_has_files_of_the_tables_size():
    """An append is given the layout without one."""
    draw = np.random.default_rng(0)
    data = {"ts": np.arange(8_000), "x": draw.integers(0, 1000, 8_000)}
    table = GrowingTable(data, Layout("zorder", ("ts", "x"), target_file_bytes=500 * ROW_BYTES))
    table.append(np.arange(8_000))
    table.keep()
    snapshot = replace(table.snapshot(), physical={name: Physical(name) for name in data})
    entry = LedgerEntry(RUNS[0], "append", Done(versions=(1,)), Layout("zorder", ("ts", "x")), snapshot)
    assert entry.shares == lookup_shares(snapshot, table.layout)
    assert entry.shares[1] < 0.3
