"""A Delta table that is dropped and made anew while its log is read is never taken for the old one."""

from threading import Lock

import pyarrow as pa
import pyarrow.fs
import pytest

from support.delta_snapshots import HEAD
from support.delta_tables import LogWriter, add
from zonal.errors import TableError
from zonal.tables.delta.listing import LogFolder
from zonal.tables.delta.log import replay


def anew(log, commits):
    """Drop the table's log, and make another table of so many commits there."""
    for file in log.log.iterdir():
        file.unlink()
    other = LogWriter(log.path).commit(*HEAD, add("new-0"))
    for number in range(1, commits):
        other.commit(add(f"new-{number}"))


def meanwhile(monkeypatch, name, act, *, before=False):
    """Let another writer act once, after (or before) the first call of a method of `Log`."""
    real, acts, one = getattr(LogFolder, name), [act], Lock()

    def call(*given, **named):
        with one:  # commits are read by several threads
            if before and acts:
                acts.pop()()
            found = real(*given, **named)
            if acts:
                acts.pop()()
            return found

    monkeypatch.setattr(LogFolder, name, staticmethod(call) if name == "of" else call)


def remote(folder):
    """The log by a file system that isn't a local one, as that of an object store."""
    return pa.fs.SubTreeFileSystem(str(folder.parent), pa.fs.LocalFileSystem()), folder.name


def local(folder):
    return pa.fs.LocalFileSystem(), str(folder)


@pytest.mark.parametrize("place", [local, remote])
@pytest.mark.parametrize("commits", [1, 3, 5])
@pytest.mark.parametrize("when", ["of", "plan", "read"])
def test_a_table_that_is_made_anew_after_its_log_was_listed_is_never_taken_for_it(
    log, monkeypatch, place, commits, when
):
    log.commit(*HEAD, add("old-0")).commit(add("old-1")).commit(add("old-2"))
    meanwhile(monkeypatch, when, lambda: anew(log, commits))
    with pytest.raises(TableError, match=r"was replaced by another table's log|is gone|Can't read"):
        replay(LogFolder.of(*place(log.log)), str)


def test_commits_that_were_read_before_the_drop_make_no_table_with_those_after_it(log, monkeypatch):
    """The first commit is read last, from the new table, which has none of the others: they were read before."""
    log.commit(*HEAD, add("old-0")).commit(add("old-1")).commit(add("old-2"))

    def backward(self, infos):
        texts = [self.read(info) for info in reversed(list(infos)[1:])]
        if not texts:  # of a history before a checkpoint
            return iter(())
        anew(log, 1)
        return iter([self.read(self.commits[0]), *reversed(texts)])

    monkeypatch.setattr(LogFolder, "read_all", backward)
    with pytest.raises(TableError, match="was replaced by another table's log"):
        replay(LogFolder.of(*local(log.log)), str)


@pytest.mark.parametrize("place", [local, remote])
def test_a_log_that_is_cleaned_up_while_it_is_read_is_the_same_table(log, monkeypatch, place):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b")).commit(add("c"))
    expected = replay(LogFolder.of(*place(log.log)), str)
    meanwhile(monkeypatch, "prove", lambda: log.forget(0, 1), before=True)
    found = replay(LogFolder.of(*place(log.log)), str)
    assert [each.rows.to_pydict() for each in found.adds] == [each.rows.to_pydict() for each in expected.adds]


def test_a_version_whose_commit_is_cleaned_up_while_it_is_read_is_proved_by_its_checkpoint(log, monkeypatch):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b")).commit(add("c"))
    meanwhile(monkeypatch, "prove", lambda: log.forget(0, 1), before=True)
    found = replay(LogFolder.of(*local(log.log)), str, version=1)
    assert {path for each in found.adds for path in each.rows["path"].to_pylist()} == {"a", "b"}


def test_a_version_that_is_cleaned_up_while_it_is_read_is_said_to_be_gone(log, monkeypatch):
    log.commit(*HEAD, add("a")).commit(add("b"))
    meanwhile(monkeypatch, "prove", lambda: log.forget(0), before=True)
    with pytest.raises(TableError, match=r"0\.json.* is gone: .* cleaned up"):
        replay(LogFolder.of(*local(log.log)), str, version=0)
