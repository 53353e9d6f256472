"""Laws of what arrived and what was rewritten, as commits tell it and as a ledger remembers it."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.commit_lines import RUNS, commit, histories, snapshot_of
from support.history_records import NOON
from zonal.history.records import LedgerRecord
from zonal.upkeep.account import account_of
from zonal.upkeep.tallies import tallies_of


def record(tally):
    return LedgerRecord(
        "t", "/t", "delta", tally.versions[-1], NOON, tally.run, "merge", len(tally.versions), tally.arrived_bytes,
        tally.arrived_rows, tally.rewritten_bytes, tally.exact,
    )  # fmt: skip


@given(histories())
def test_every_byte_is_counted_once_whichever_run_it_belongs_to(commits):
    tallies = tallies_of(snapshot_of(commits))
    arrived = sum(each.added_bytes for each in commits if each.kind not in ("zonal", "compaction"))
    rewritten = sum(each.added_bytes for each in commits if each.kind == "zonal")
    assert sum(each.arrived_bytes for each in (*tallies.runs, tallies.since)) == arrived
    assert sum(each.arrived_rows for each in (*tallies.runs, tallies.since)) == arrived
    assert sum(each.rewritten_bytes for each in tallies.runs) == rewritten
    assert len({each.run for each in tallies.runs}) == len(tallies.runs)
    account = account_of(snapshot_of(commits))
    assert (account.arrived, account.rewritten, account.exact) == (arrived, rewritten, True)


@given(histories(), st.data())
def test_a_ledger_knows_what_expired_and_changes_nothing_where_nothing_did(commits, data):
    whole = account_of(snapshot_of(commits))
    seen = data.draw(st.integers(0, len(commits) - 1))
    ledger = [record(each) for each in tallies_of(snapshot_of(commits[: seen + 1])).runs]
    assert account_of(snapshot_of(commits), ledger) == whole
    first = data.draw(st.integers(0, seen))
    cut = snapshot_of(commits[first:], len(commits) - 1)
    known = account_of(cut, ledger)
    assert known.rewritten <= whole.rewritten
    if known.exact:
        assert (known.arrived, known.rewritten) == (whole.arrived, whole.rewritten)
    if ledger and ledger[-1].version >= first - 1:
        assert known.rewritten == whole.rewritten, "it goes on where the ledger ends"


def test_runs_that_were_rolled_back_dont_count():
    commits = [commit(0, "append", 100), commit(1, "zonal", 100, RUNS[0]), commit(2, "zonal", 50, RUNS[1])]
    beside = replace(commits[2], id=9, parent=0)
    account = account_of(
        snapshot_of([*commits[:2], beside], 9), [record(each) for each in tallies_of(snapshot_of(commits)).runs]
    )
    assert (account.arrived, account.rewritten) == (100, 50)


def test_a_commit_that_doesnt_tell_counts_what_is_left_of_its_files():
    commits = [commit(0, "append", 100), commit(1, "overwrite", None), commit(2, "zonal", 50, RUNS[0])]
    snapshot = snapshot_of(commits)
    files = replace(snapshot.files, added_by=np.full(len(snapshot.files), 1))
    (run,) = tallies_of(replace(snapshot, files=files)).runs
    assert (run.arrived_bytes, run.exact, run.arrived_rows) == (100 + snapshot.files.sizes.sum(), False, None)
    assert not account_of(snapshot).exact


def test_a_table_without_commits_has_what_is_in_it():
    account = account_of(snapshot_of([]))
    assert (account.arrived, account.rewritten, account.exact) == (10 * 100, 0, False)


def test_names_of_runs_that_nobody_gave_and_circles_do_no_harm():
    commits = [commit(0, "append", 100), commit(1, "zonal", 5, "x" * 10**5), commit(2, "append", 7, "\0")]
    tallies = tallies_of(snapshot_of(commits))
    assert [each.run for each in tallies.runs] == ["commit 1"]
    assert tallies.since.arrived_bytes == 7
    circle = [replace(commits[0], parent=2, is_first=False), *commits[1:]]
    assert account_of(snapshot_of(circle)).rewritten == 5
