"""Audits and runs in the history: kept, compared, and told where they can't be."""

import pytest

import zonal
from support.audit_life import Life
from support.audits import asked_of
from zonal.errors import ZonalError
from zonal.history.records import HistoryError
from zonal.history.store import History


def test_audits_are_remembered_and_the_next_one_is_held_against_them(tmp_path):
    life = Life("delta", tmp_path)
    database = f"sqlite:///{tmp_path / 'history.db'}"
    life.until("clustered")
    first = asked_of(life, database=database, alert_ratio=None)
    assert not first.judgment.alerts, "there is nothing to be worse than"
    life.until("compacted")
    second = asked_of(life, database=database, alert_ratio=None)
    assert [alert.kind for alert in second.judgment.alerts] == ["worse"]
    assert second.judgment.alerts[0].limit == pytest.approx(1.5 * first.reads.ratio)
    asked_of(life, database=database, at=life.stages["clustered"].version)
    with History.open(database) as history:
        records = history.audits(first.table.location)
    assert [record.ratio for record in records] == pytest.approx([first.reads.ratio, second.reads.ratio]), (
        "past versions aren't kept"
    )
    assert records[1].culprit == second.blame.culprit.sentence
    assert records[1].alerts == (second.judgment.alerts[0].text,)


def test_a_history_that_cant_be_written_costs_neither_the_audit_nor_the_rewrite(tmp_path, monkeypatch):
    from support.local_runner import run_here

    life = Life("delta", tmp_path)
    life.until("written")

    def full(*_):
        raise HistoryError("The disk is full.")

    monkeypatch.setattr(History, "_add", full)
    database = f"sqlite:///{tmp_path / 'history.db'}"
    found = asked_of(life, database=database)
    assert "This audit isn't in the history. The disk is full." in found.made.notes
    done = zonal.cluster(life.name, by=["x"], spark=run_here, database=database, **life.options)
    assert done.run.versions
    assert done.note == "The run isn't in the history. The disk is full."
    with pytest.raises(HistoryError):
        zonal.cluster(life.name, by=["t"], spark=run_here, database="nosuch://x", **life.options)
    with pytest.raises(ZonalError, match="database=False is not the URL of a history"):
        zonal.audit("delta:/no/such/table", queries=["no such log"], database=False)
    assert zonal.open_table(life.name).snapshot().version == done.run.versions[-1], "refused before any work"


def test_a_version_by_name_is_audited_but_neither_compared_nor_kept(tmp_path):
    life = Life("delta", tmp_path)
    life.until("clustered")
    database = f"sqlite:///{tmp_path / 'history.db'}"
    found = zonal.audit(f"{life.name}@1", queries=[life.log], sampling=zonal.Sampling(look=False), database=database)
    assert found.table.version == 1
    assert not (tmp_path / "history.db").exists()


def test_runs_are_remembered_with_what_was_predicted(tmp_path):
    from support.local_runner import run_here

    life = Life("delta", tmp_path)
    life.until("written")
    database = f"sqlite:///{tmp_path / 'history.db'}"
    logs = zonal.Logs([life.log])
    done = zonal.cluster(
        life.name,
        layout="tree",
        queries=logs,
        files=zonal.NewFiles(target_file_size=4_000),
        spark=run_here,
        database=database,
        **life.options,
    )
    with History.open(database) as history:
        (run,) = history.runs(done.location)
    assert (run.run, run.rows, run.version) == (done.run.id, 4_000, done.run.versions[-1])
    assert (run.share_before, run.share_predicted, run.share_after) == (
        done.predicted.share_before,
        done.predicted.share_predicted,
        done.predicted.share_after,
    )
    assert (run.predicted_files, run.predicted_bytes) == (done.change.predicted_files, done.change.predicted_bytes)
    assert run.predicted_files > 1
    again = zonal.cluster(life.name, spark=run_here, database=database, **life.options)
    assert not again.run.versions, "there is nothing to do"
    with History.open(database) as history:
        assert len(history.runs(done.location)) == 1, "and nothing to remember"
