"""The quarantine: out of readers' sight, back from any half-done state, deleted only when old and not needed."""

import json
import os
import shutil

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import zonal
from support.cleaning import WEEK, cleaned, everything, left_by_run, now, quarantined
from support.cluster_tables import Delta, home, parts_of, telemetry
from zonal.cleaning.places import FOLDER
from zonal.errors import TableError, ZonalError
from zonal.verbs.clean import clean


@pytest.fixture
def cleaned_table(tmp_path):
    """A table of which three files are in quarantine, what it had before, and the run."""
    table = Delta(tmp_path).make(parts_of(telemetry(60), 3))
    table.cluster(by=["x"])
    before = everything(table.root)
    done = cleaned(table, now())
    assert len(done.files) == 3
    return table, before, done


def manifest(table, run):
    lines = (table.root / FOLDER / run / "manifest.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines if line]


def test_the_manifest_says_of_every_file_why_nobody_needs_it(cleaned_table):
    table, before, done = cleaned_table
    lines = manifest(table, done.run)
    assert [line["path"] for line in lines] == [file.path for file in done.files]
    for line in lines:
        assert before[line["path"]] == (table.root / FOLDER / done.run / str(line["number"])).read_bytes()
        assert line["size"] == len(before[line["path"]])
        assert line["reason"] == "removed from the table"
        assert line["why"].startswith("Version 3 removed it, and versions from 3 on")


def test_no_reader_of_the_folder_takes_quarantined_files_for_data(tmp_path):
    table = home("parquet", tmp_path).make([telemetry(10)])
    left = left_by_run(table.root)
    pq.write_table(telemetry(7), left)
    cleaned(table)
    assert not left.exists()
    assert duckdb.sql(f"SELECT count(*) FROM '{table.root}/**/*.parquet'").fetchall() == [(10,)]
    assert ds.dataset(table.root).count_rows() == 10
    assert zonal.show(str(table.root)).table.rows == 10


def test_vacuum_leaves_the_quarantine_alone(cleaned_table):
    table, _, done = cleaned_table
    table.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert quarantined(table.root)[done.run] == ["1", "2", "3", "manifest.jsonl"]


# --- back ------------------------------------------------------------------------------------------------------------


def test_undo_brings_all_files_back_once(cleaned_table):
    table, before, done = cleaned_table
    back = cleaned(table, undo=done.run, yes=False)
    assert back.action == "undo"
    assert {file.path for file in back.files} == {file.path for file in done.files}
    assert everything(table.root) == before
    assert cleaned(table, undo=done.run).files == (), "a second time there is nothing to do"
    assert everything(table.root) == before


def test_undo_refuses_to_replace_what_has_a_name_now(cleaned_table):
    table, _, done = cleaned_table
    (table.root / done.files[1].path).write_bytes(b"others' rows")
    before = everything(table.root)
    with pytest.raises(ZonalError, match="taken by now"):
        cleaned(table, undo=done.run)
    assert everything(table.root) == before, "nothing was brought back"


def test_a_run_that_isnt_there_is_named_with_those_that_are(cleaned_table):
    table, _, done = cleaned_table
    for wrong in ("../..", "20200101-000000-00000000", "", "x" * 300):
        with pytest.raises(ZonalError, match=f"There is no run.*{done.run}"):
            cleaned(table, undo=wrong)


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_clean_up_that_died_between_two_moves_can_be_undone_or_completed(tmp_path, monkeypatch, moves):
    table = Delta(tmp_path).make(parts_of(telemetry(60), 3))
    table.cluster(by=["x"])
    before, done = everything(table.root), now()
    _die_after(monkeypatch, "rename", moves, lambda path: str(path).endswith(".parquet"))
    with pytest.raises(SystemExit):
        cleaned(table, done)
    monkeypatch.undo()
    (run,) = quarantined(table.root)
    assert len(quarantined(table.root)[run]) == moves + 1
    shutil.copytree(table.root, tmp_path / "copy")
    completed = Delta(tmp_path, "copy")
    assert len(cleaned(completed, done).files) == 3 - moves
    cleaned(table, undo=run)
    assert everything(table.root) == before


@pytest.mark.parametrize("name", ["link", "unlink"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_an_undo_that_died_between_two_steps_is_completed(cleaned_table, monkeypatch, name, steps):
    table, before, done = cleaned_table
    _die_after(monkeypatch, name, steps, lambda path: FOLDER in str(path))
    with pytest.raises(SystemExit):
        cleaned(table, undo=done.run)
    monkeypatch.undo()
    cleaned(table, undo=done.run)
    assert everything(table.root) == before
    assert quarantined(table.root)[done.run] == ["undone.jsonl"]


def _die_after(monkeypatch, name, calls, counts):
    """Let the process die before a call of the operating system."""
    real, made = getattr(os, name), []

    def call(path, *given, **named):
        if counts(path):
            if len(made) == calls:
                raise SystemExit
            made.append(path)
        return real(path, *given, **named)

    monkeypatch.setattr(os, name, call)


def test_a_disk_without_hard_links_brings_files_back_by_renaming(cleaned_table, monkeypatch):
    table, before, done = cleaned_table

    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    cleaned(table, undo=done.run)
    assert everything(table.root) == before


def test_a_file_that_cant_be_moved_stays_and_is_told(tmp_path, monkeypatch):
    table = Delta(tmp_path).make(parts_of(telemetry(60), 3))
    table.cluster(by=["x"])
    real, failed = os.rename, []

    def rename(source, target):
        if str(source).endswith(".parquet") and not failed:
            failed.append(source)
            raise OSError(18, "Invalid cross-device link")
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    done = cleaned(table, now())
    assert len(done.files) == 2
    assert "cross-device" in done.notes[0]
    assert failed[0].exists()


# --- deleted ---------------------------------------------------------------------------------------------------------


def test_purge_deletes_what_is_old_enough_and_only_with_yes(cleaned_table):
    table, _, done = cleaned_table
    young = cleaned(table, now() - WEEK, purge=True)
    assert young.files == ()
    assert "younger than 7 days" in young.notes[0]
    plan = cleaned(table, now(), purge=True, yes=False)
    assert (plan.action, len(plan.files)) == ("plan", 3)
    assert done.run in quarantined(table.root)
    gone = cleaned(table, now(), purge=True)
    assert (gone.action, len(gone.files)) == ("purge", 3)
    assert not (table.root / FOLDER).exists()
    assert len(table.rows()) == 60


def test_purge_keeps_a_file_that_the_table_needs_by_now(cleaned_table):
    table, before, done = cleaned_table
    path = done.files[0].path
    text = (table.root / "_delta_log" / f"{0:020d}.json").read_text()
    add = next(json.loads(line) for line in text.split("\n") if '"add"' in line)
    add["add"] |= {"path": path, "size": len(before[path])}
    (table.root / "_delta_log" / f"{table.version() + 1:020d}.json").write_text(json.dumps(add) + "\n")
    kept = cleaned(table, now(), purge=True)
    assert kept.files == ()
    assert f"undo='{done.run}'" in kept.notes[0]
    assert len(quarantined(table.root)[done.run]) == 4


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_purge_that_died_is_completed(cleaned_table, monkeypatch, steps):
    table, *_ = cleaned_table
    _die_after(monkeypatch, "unlink", steps, lambda path: FOLDER in str(path))
    with pytest.raises(SystemExit):
        cleaned(table, now(), purge=True)
    monkeypatch.undo()
    cleaned(table, now(), purge=True)
    assert not (table.root / FOLDER).exists()


# --- hostile ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../out.parquet", "/etc/out", "a/../../out", "", "a\x00b", f"{FOLDER}/x", "a//b"])
def test_a_manifest_that_names_a_place_outside_is_refused(cleaned_table, path):
    table, _, done = cleaned_table
    lines = manifest(table, done.run)
    lines[1]["path"] = path
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (table.root / FOLDER / done.run / "manifest.jsonl").write_text(text)
    before = everything(table.root)
    with pytest.raises(TableError, match="outside of the table"):
        cleaned(table, undo=done.run)
    assert everything(table.root) == before


@pytest.mark.parametrize("text", ["{", "[1]\n", '{"number": 2}\n', '{"number": 1}\n', "[" * 100_000])
def test_a_manifest_that_cant_be_read_is_an_error(cleaned_table, text):
    table, _, done = cleaned_table
    (table.root / FOLDER / done.run / "manifest.jsonl").write_text(text)
    with pytest.raises(TableError, match=r"manifest\.jsonl' can't be read"):
        cleaned(table, undo=done.run)


def test_links_in_place_of_the_quarantine_or_of_a_folder_are_not_followed(cleaned_table, tmp_path):
    table, _, done = cleaned_table
    lines = manifest(table, done.run)
    lines[0]["path"] = f"linked/{lines[0]['path']}"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (table.root / FOLDER / done.run / "manifest.jsonl").write_text(text)
    other = tmp_path / "other"
    other.mkdir()
    (table.root / "linked").symlink_to(other)
    with pytest.raises(TableError, match="is a link"):
        cleaned(table, undo=done.run)
    (table.root / FOLDER).rename(other / "moved")
    (table.root / FOLDER).symlink_to(other / "moved")
    for asked in ({"undo": done.run}, {"purge": True}, {}):
        with pytest.raises(TableError, match="is a link"):
            cleaned(table, now(), **asked)
    assert [path.name for path in other.iterdir()] == ["moved"]


@pytest.mark.parametrize("asked", [{"undo": "x", "purge": True}, {"expire": "7d", "purge": True}])
def test_different_things_at_once_are_refused(tmp_path, asked):
    table = Delta(tmp_path).make([telemetry(5)])
    with pytest.raises(ZonalError, match="one at a time"):
        clean(table.name, **asked)


@pytest.mark.parametrize("asked", [{"expire": "soon"}, {"expire": "-1d"}, {"older_than": "7"}])
def test_what_is_no_duration_is_refused(tmp_path, asked):
    table = Delta(tmp_path).make([telemetry(5)])
    with pytest.raises(ZonalError, match="is no duration"):
        clean(table.name, **asked)


def test_the_storages_clock_counts_where_it_is_behind(tmp_path):
    table = Delta(tmp_path).make(parts_of(telemetry(60), 3))
    table.cluster(by=["x"])
    ahead = now() + 3 * WEEK
    zone = ahead.tzinfo

    class Ahead(type(ahead)):
        @classmethod
        def now(cls, tz=None):  # noqa: ARG003
            return ahead.astimezone(zone)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("zonal.verbs.clean.datetime", Ahead)
        assert len(clean(table.name, expire="7d").files) == 3, "a dry run knows this machine's clock alone"
        assert clean(table.name, expire="7d", yes=True).files == ()
