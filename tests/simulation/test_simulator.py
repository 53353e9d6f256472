"""The simulator itself: schedules replay exactly, leave nothing behind, and notice faults that are put into zonal."""

import errno
import os
import pathlib
import random
import secrets
import tempfile
import threading
import time
import uuid
from functools import partial

import numpy as np
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.utils.concurrent import ExecutorFactory

import zonal.errors
import zonal.plan.run
import zonal.rewriting.carry_over
import zonal.rewriting.in_place
import zonal.tables.delta.commit
import zonal.tables.delta.listing
import zonal.tables.delta.replacement
from simulation.events import START, WRITTEN, Crash, Thing, World
from simulation.running import LEDGERS, run_schedule
from simulation.seeding import seeded
from zonal.storage import Storage


@pytest.mark.parametrize("kind", LEDGERS)
def test_the_same_seed_gives_the_same_events_and_the_same_end(kind):
    first, second = run_schedule(kind, 4), run_schedule(kind, 4)
    assert first.events == second.events
    assert (first.told, first.violations) == (second.told, second.violations)


def test_another_seed_gives_other_events():
    assert run_schedule("delta", 4).events != run_schedule("delta", 5).events


@pytest.mark.parametrize("act", ["append", "clean_log"])
def test_what_others_do_right_after_a_commit_to_a_store_is_no_doubt_about_it(act):
    """They write on, or remove the version behind a checkpoint, before zonal looks at it once more."""
    plain = run_schedule("delta-store", 46, things=lambda *_: [])
    reads = [event for event in plain.events if event.kind == "read"]
    number = max(at for at, event in enumerate(reads, 1) if "_delta_log" in event.path)

    def things(_, ledger, __):
        return [Thing("read", number, act, meanwhile=ledger.several("append", act))]

    found = run_schedule("delta-store", 46, things=things)
    assert plain.outcome == found.outcome == "done", found.told
    assert not found.violations


def test_other_threads_do_not_move_the_clock(tmp_path):
    world = World(tmp_path)
    with seeded(world, "a seed"):
        time.sleep(1)
        after = world.clock
        assert after > START
        other = threading.Thread(target=lambda: (time.sleep(0), time.time(), time.time_ns()))
        other.start()
        other.join()
        assert world.clock == after


def test_after_a_crash_nothing_stays_replaced_and_no_file_stays(tmp_path, monkeypatch):
    def what_is_replaced():
        return [
            os.link, os.fsync, os.stat, os.open, pathlib.Path.open, pathlib.Path.exists, uuid.uuid4, secrets.token_hex,
            time.time, time.sleep, SqlCatalog.load_table, SqlCatalog.commit_table, PyArrowFile.open, Storage.locate,
            ExecutorFactory.get_or_create, zonal.tables.delta.listing.ThreadPoolExecutor,
            zonal.plan.run.datetime,
        ]  # fmt: skip

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, state = what_is_replaced(), random.getstate()
    verdict = run_schedule("delta", 0, things=lambda *_: [Thing("link", 1, "crash", error=Crash)])
    assert verdict.outcome == "crash"
    assert not verdict.violations
    assert what_is_replaced() == before
    assert "__len__" in vars(PyArrowFile)
    assert random.getstate() == state
    assert not list(tmp_path.iterdir())


def test_rows_that_come_back_are_noticed(monkeypatch):
    """Without the check for conflicts, rows that another writer deletes while a table is clustered come back."""
    monkeypatch.setattr(zonal.tables.delta.replacement, "still_live", lambda replacement, _: list(replacement.removed))
    verdict = run_schedule(
        "delta", 1, things=lambda _, ledger, __: [Thing(WRITTEN, 1, "delete", meanwhile=lambda: ledger.act("delete"))]
    )
    assert verdict.categories == {"rows"}, verdict.told


def test_files_that_are_removed_though_they_are_the_tables_are_noticed(monkeypatch):
    sweep = zonal.rewriting.in_place.sweep
    monkeypatch.setattr(zonal.rewriting.in_place, "sweep", lambda writing, _: sweep(writing, ()))
    assert run_schedule("iceberg2", 0, things=lambda *_: []).categories == {"removed-live"}


def test_a_raw_error_is_noticed():
    def error():
        return OSError(errno.EIO, "on purpose")

    def fail(*_):
        return [Thing("list", 1, "EIO", error=error)]

    assert not run_schedule("delta", 0, things=fail).violations, "reading the log turns it into a TableError"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zonal.tables.delta.listing, "STORAGE_ERRORS", (ZeroDivisionError,))
        assert run_schedule("delta", 0, things=fail).categories == {"raw-OSError-in-listing"}


def test_an_untrue_message_is_noticed(monkeypatch):
    """The commit is made, and the message says that it isn't."""

    def late(*given, **named):
        real(*given, **named)
        raise zonal.errors.TableError("Nothing was committed.")

    real = zonal.tables.delta.commit.put_version
    monkeypatch.setattr(zonal.tables.delta.commit, "put_version", late)
    assert "untrue-nothing" in run_schedule("delta", 0, things=lambda *_: []).categories


CARRIED = pytest.mark.parametrize(
    ("kind", "seed", "act"), [("delta-carried", 0, "mark"), ("iceberg-carried", 5, "positions")]
)


@CARRIED
def test_deletes_are_carried_over_in_schedules(kind, seed, act):
    verdict = run_schedule(kind, seed, things=partial(marked, act))
    assert not verdict.violations
    names = ("/deletion_vector_", "/deletes-")
    written = [event for event in verdict.events if event.kind == "create" and any(map(event.path.count, names))]
    assert len(written) == 1
    assert sum(event.kind == WRITTEN for event in verdict.events) == 1, "nothing is done again"


@CARRIED
def test_wrong_deletes_are_noticed(kind, seed, act, monkeypatch):
    def others(*given):
        return {path: np.arange(len(places)) for path, places in real(*given).items()}

    real = zonal.rewriting.carry_over.find_twins
    monkeypatch.setattr(zonal.rewriting.carry_over, "find_twins", others)
    assert "rows" in run_schedule(kind, seed, things=partial(marked, act)).categories


def marked(act, _, ledger, __):
    return [Thing(WRITTEN, 1, f"another writer: {act}", meanwhile=lambda: ledger.act(act))]
