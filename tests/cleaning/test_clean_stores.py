"""`clean` in an object store: through faults and beside others, a file is in its place, in quarantine, or in both."""

import json
from contextlib import suppress
from threading import Thread

import pytest

from support.cleaning import RUN, WEEK, cleaned, clock, now
from support.cluster_tables import assert_same_rows, parts_of, telemetry
from support.s3_server import CUT, SLOW_DOWN, Fault, s3_server
from support.store_tables import stored_home
from zonal.cleaning import quarantine, store_place
from zonal.cleaning.places import FOLDER
from zonal.errors import TableError, ZonalError
from zonal.storage import Storage, objects
from zonal.verbs.clean import clean

pytest.importorskip("obstore", reason="obstore needs Python 3.11")

KINDS = ["delta", "iceberg v1", "iceberg v2"]
ROWS = telemetry(60)


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch):
    """Requests are repeated once, so that a fault that stays is told soon."""
    monkeypatch.setitem(objects._RETRIES, "max_retries", 1)


@pytest.fixture(params=["delta", "iceberg v2"])
def table(request, server, tmp_path):
    return replaced(request.param, server, tmp_path)


@pytest.fixture(scope="module")
def delta_objects():
    """All objects of the bucket of a Delta table, which says nothing of where it is: made once, and copied."""
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as server:
        replaced("delta", server, None)
        return server.content()


@pytest.fixture
def delta(server, delta_objects):
    for key, body in delta_objects.items():
        server.client.put_object(Bucket="box", Key=key, Body=body)
    server.heard.clear()
    return stored_home("delta", server, None)


def replaced(kind, server, folder):
    """A table whose files were all replaced, what a broken run left, and other objects beside it."""
    table = stored_home(kind, server, folder).make(parts_of(ROWS, 3))
    table.cluster(by=["x"])
    data = f"{table.top}/data" if kind != "delta" else table.top
    server.client.put_object(Bucket="box", Key=f"{data}/zonal-0123456789ab-{RUN}-0/left.parquet", Body=b"left")
    for key in (f"{table.top}-other/{FOLDER}/x", "other", f"{table.top}/notes.txt"):
        server.client.put_object(Bucket="box", Key=key, Body=b"others'")
    return table


def paths(table, done):
    return {f"{table.top}/{file.path}" for file in done.files}


# --- what it does ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files_go_to_quarantine_come_back_and_are_deleted(kind, server, tmp_path):
    table = replaced(kind, server, tmp_path)
    before, moment = table.everything(), now()
    plan = cleaned(table, moment, yes=False)
    assert table.everything() == before
    done = cleaned(table, moment)
    assert {file.path for file in done.files} == {file.path for file in plan.files}
    assert done.notes == plan.notes
    assert gone(table, before) == paths(table, done)
    assert content(table, done.run) == sorted(before[path] for path in paths(table, done))
    assert_same_rows(table.rows(), ROWS)
    back = cleaned(table, undo=done.run, yes=False)
    assert {file.path for file in back.files} == {file.path for file in done.files}
    assert not gone(table, before)
    assert table.quarantined() == {done.run: ["undone.jsonl"]}
    assert cleaned(table, undo=done.run).files == (), "a second time there is nothing to do"
    assert len(cleaned(table, now()).files) == len(done.files)
    purged = cleaned(table, now(), purge=True)
    assert (purged.action, len(purged.files)) == ("purge", len(done.files))
    assert not table.quarantined()
    assert gone(table, before) == paths(table, done)
    assert_same_rows(table.rows(), ROWS)
    assert not server.uploads()


def test_what_is_young_stays(table):
    done = cleaned(table, now())
    young = cleaned(table, now() - WEEK, purge=True)
    assert young.files == ()
    assert "younger than 7 days" in young.notes[0]
    assert len(cleaned(table, now(), purge=True, yes=False).files) == len(done.files)
    assert done.run in table.quarantined()


def test_nothing_but_the_quarantine_is_listed_to_move_files(delta):
    done = cleaned(delta, now())
    for asked in ({"undo": done.run}, {"purge": True}):
        delta.server.heard.clear()
        cleaned(delta, now(), **asked)
        lists = [each for each in delta.server.heard if each.startswith("GET /box?") and FOLDER not in each]
        assert [each for each in lists if "_delta_log" not in each] == []


def test_each_file_takes_few_requests(delta):
    cleaned(delta, now(), yes=False)
    looked = delta.server.counts()
    delta.server.heard.clear()
    done = cleaned(delta, now())
    asked = delta.server.counts()
    assert (asked["COPY"], asked["DELETE"]) == (len(done.files), len(done.files) + 2)
    assert asked["HEAD"] - looked["HEAD"] <= 3 * len(done.files) + 5
    assert asked["GET"] - looked["GET"] <= 12


def test_a_clean_up_without_anything_to_do_leaves_nothing(server, tmp_path):
    table = stored_home("delta", server, tmp_path).make([ROWS])
    before = server.content()
    assert cleaned(table, now()).run is None
    assert server.content() == before


def test_the_stores_clock_counts_where_it_is_behind(delta, monkeypatch):
    ahead = now() + 3 * WEEK

    class Ahead(type(ahead)):
        @classmethod
        def now(cls, tz=None):
            return ahead.astimezone(tz)

    monkeypatch.setattr("zonal.verbs.clean.datetime", Ahead)
    assert clean(delta.name, expire="7d", **delta.options).files, "a dry run knows this machine's clock alone"
    assert clean(delta.name, expire="7d", yes=True, **delta.options).files == ()


def gone(table, before):
    """The objects that aren't there any more; all others have their content."""
    after = table.everything()
    assert {key: after[key] for key in before if key in after} == {key: before[key] for key in before if key in after}
    return before.keys() - after.keys()


def content(table, run):
    """What is in quarantine under numbers."""
    found = table.server.content(lambda key: f"/{FOLDER}/{run}/" in key)
    return sorted(body for key, body in found.items() if key.rpartition("/")[2].isdecimal())


def nothing_is_lost(table, before):
    """Every object is in its place or in quarantine; undone, all are in their places, and then a clean-up succeeds."""
    server = table.server
    server.faults, server.before = [], lambda *_: None
    held = list(server.content(lambda key: f"/{FOLDER}/" in key).values())
    for key in gone(table, before):
        assert before[key] in held, f"{key} is in none of its places"
    for run in table.quarantined():
        cleaned(table, undo=run)
    assert not gone(table, before)
    assert_same_rows(table.rows(), ROWS)
    assert not cleaned(table, now()).notes
    cleaned(table, now(), purge=True)
    assert not table.quarantined()
    assert_same_rows(table.rows(), ROWS)


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "after", "answer"),
    [("COPY", False, CUT), ("COPY", True, SLOW_DOWN), ("DELETE", False, CUT), ("DELETE", True, CUT),
     ("DELETE", False, SLOW_DOWN)],
)  # fmt: skip
def test_a_request_that_is_repeated_moves_the_file(delta, method, after, answer):
    before = delta.everything()
    path = f"/{FOLDER}/" if method == "COPY" else ".parquet"
    delta.server.faults = [Fault(method, path, answer, after=after)]
    done = cleaned(delta, now())
    assert delta.server.faults[0].times == 0
    assert len(done.files) == 4
    assert not done.notes
    nothing_is_lost(delta, before)


@pytest.mark.parametrize(
    ("kind", "method", "path", "after"),
    [("delta", "COPY", FOLDER, False), ("delta", "COPY", FOLDER, True), ("delta", "DELETE", ".parquet", False),
     ("delta", "DELETE", ".parquet", True), ("delta", "HEAD", FOLDER, False), ("iceberg v2", "COPY", FOLDER, True),
     ("iceberg v2", "DELETE", ".parquet", False)],
)  # fmt: skip
def test_a_store_that_fails_from_a_moment_on_costs_no_file(kind, method, path, after, server, tmp_path):
    """Between copy and deletion, between both and their answers, and at each look."""
    table = replaced(kind, server, tmp_path)
    before = table.everything()
    table.server.faults = [Fault(method, path, CUT, times=10**6, after=after)]
    try:
        done = cleaned(table, now())
    except ZonalError:
        assert method == "HEAD", "without the store's time, nothing begins"
    else:
        assert done.notes or (method, after) == ("DELETE", True)
        assert method == "DELETE" or not [file for file in done.files if file.path.endswith(".parquet")]
    nothing_is_lost(table, before)


@pytest.mark.parametrize(("moment", "calls"), [("COPY", 1), ("COPY", 2), ("DELETE", 1), ("DELETE", 4)])
def test_a_process_that_dies_can_be_undone_or_completed(delta, moment, calls, monkeypatch):
    """Before the copy or the deletion of a file; from then on no request is sent."""
    before, made = delta.everything(), []
    owner, name = (objects.Objects, "copy") if moment == "COPY" else (store_place.StorePlace, "_delete")
    real, told = getattr(owner, name), objects.Objects._told

    def counted(self, *given):
        made.append(given)
        return real(self, *given)

    def dying(self):
        if len(made) >= calls:
            raise SystemExit
        return told(self)

    with monkeypatch.context() as patched:
        patched.setattr(store_place, "_AT_ONCE", 1)
        patched.setattr(owner, name, counted)
        patched.setattr(objects.Objects, "_told", dying)
        with pytest.raises(SystemExit):
            cleaned(delta, now())
    assert len(gone(delta, before)) == calls - 1
    second = cleaned(delta, now())
    assert len(second.files) == 4 - (calls - 1), "a second clean-up goes on"
    nothing_is_lost(delta, before)


@pytest.mark.parametrize(("kind", "after"), [("delta", True), ("iceberg v2", False)])
def test_a_manifest_that_cant_be_written_lets_nothing_be_moved(kind, after, server, tmp_path):
    table = replaced(kind, server, tmp_path)
    before = table.everything()
    table.server.faults = [
        Fault("PUT", "manifest.jsonl", CUT, times=99, after=after),
        Fault("GET", "manifest.jsonl", CUT, times=99),
    ]
    with pytest.raises(TableError, match="can't be written, so nothing was moved"):
        cleaned(table, now())
    assert not gone(table, before)
    assert not [each for each in table.server.heard if each.startswith("COPY")]
    assert not table.quarantined()


def test_a_manifest_whose_answer_is_lost_is_known_by_its_content(delta):
    delta.server.faults = [Fault("PUT", "manifest.jsonl", CUT, times=2, after=True)]
    assert len(cleaned(delta, now()).files) == 4
    assert delta.server.faults[0].times == 0


def test_who_may_not_delete_is_told_before_anything_is_copied(delta):
    before = delta.everything()
    delta.server.faults = [Fault("DELETE", "", "403 Forbidden", times=10**6, code="AccessDenied")]
    with pytest.raises(TableError, match=r"nothing was moved: .*403 Forbidden"):
        cleaned(delta, now())
    assert not [each for each in delta.server.heard if each.startswith("COPY")]
    nothing_is_lost(delta, before)


def test_a_file_that_may_not_be_deleted_stays_and_is_told(delta):
    before = delta.everything()
    delta.server.faults = [Fault("DELETE", ".parquet", "403 Forbidden", times=10**6, code="AccessDenied")]
    done = cleaned(delta, now())
    assert done.files == ()
    assert all("stays: it can't be moved" in note and "403" in note for note in done.notes)
    nothing_is_lost(delta, before)


def test_objects_that_are_too_large_for_one_copy_stay(delta, monkeypatch):
    before = delta.everything()
    with monkeypatch.context() as patched:
        patched.setitem(store_place._LARGEST_COPY, "s3", 100)
        done = cleaned(delta, now())
    assert [file.path.rpartition("/")[2] for file in done.files] == ["left.parquet"]
    assert len(done.notes) == 3
    assert all("5 GiB" in note for note in done.notes)
    nothing_is_lost(delta, before)


# --- back ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "after", "ignores"),
    [("COPY", ".parquet", False, False), ("COPY", ".parquet", True, False), ("COPY", ".parquet", True, True),
     ("DELETE", "/1", False, False), ("DELETE", "/1", True, False), ("HEAD", ".parquet", False, False),
     ("PUT", "undone.jsonl", False, False)],
)  # fmt: skip
def test_an_undo_that_is_cut_can_be_repeated(delta, method, path, after, ignores):
    before = delta.everything()
    done = cleaned(delta, now())
    delta.server.ignores_copy_conditions = ignores
    delta.server.faults = [Fault(method, path, CUT, times=10**6, after=after)]
    with suppress(TableError):  # a lost answer may be known by what is there
        cleaned(delta, undo=done.run)
    assert [each for each in delta.server.heard if each.startswith(method) and path in each]
    nothing_is_lost(delta, before)


def test_undo_refuses_to_replace_what_has_a_name_now(delta):
    done = cleaned(delta, now())
    taken = f"{delta.top}/{done.files[1].path}"
    delta.server.client.put_object(Bucket="box", Key=taken, Body=b"others' rows")
    before = delta.server.content()
    with pytest.raises(ZonalError, match="taken by now"):
        cleaned(delta, undo=done.run)
    assert delta.server.content() == before, "nothing was brought back"


def test_an_object_that_appears_at_the_last_moment_is_not_replaced(delta):
    done = cleaned(delta, now())
    taken = f"{delta.top}/{done.files[0].path}"

    def appear(method, path):
        if method == "COPY" and path.endswith(taken):
            delta.server.before = lambda *_: None
            delta.server.client.put_object(Bucket="box", Key=taken, Body=b"others' rows")

    delta.server.before = appear
    with pytest.raises(TableError, match="another object by now"):
        cleaned(delta, undo=done.run)
    assert delta.server.content()[taken] == b"others' rows"
    assert "1" in delta.quarantined()[done.run], "what was to be brought back is still there"


def test_without_conditional_copies_a_look_comes_first(delta):
    before = delta.everything()
    done = cleaned(delta, now())
    delta.server.ignores_copy_conditions = True
    cleaned(delta, undo=done.run)
    assert not gone(delta, before)
    assert delta.quarantined() == {done.run: ["undone.jsonl"]}


def test_equal_content_under_another_tag_is_back_already(delta, monkeypatch):
    """As for encrypted objects, whose tags are no hashes."""
    before = delta.everything()
    done = cleaned(delta, now())
    key = f"{delta.top}/{done.files[0].path}"
    delta.server.client.put_object(Bucket="box", Key=key, Body=before[key])
    real = objects._stored
    monkeypatch.setattr(objects, "_stored", lambda found: real({**found, "e_tag": found["path"]}))
    monkeypatch.setattr(objects, "_COMPARED_AT_ONCE", 1000)
    cleaned(delta, undo=done.run)
    assert not gone(delta, before)
    assert delta.quarantined() == {done.run: ["undone.jsonl"]}


# --- beside others ---------------------------------------------------------------------------------------------------


def test_two_clean_ups_at_once_lose_nothing(table):
    before, moment, results = table.everything(), now(), []
    with clock(moment + WEEK):
        threads = [
            Thread(target=lambda: results.append(clean(table.name, expire="7d", yes=True, **table.options)))
            for _ in range(2)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(results) == 2
    assert {path for done in results for path in paths(table, done)} >= gone(table, before)
    assert len(gone(table, before)) >= 4
    nothing_is_lost(table, before)


def test_an_undo_between_copy_and_deletion_leaves_the_file_somewhere(delta):
    """The request to delete the original is under way while the same run is undone."""
    before, undone = delta.everything(), []

    def undo(method, path):
        if method == "DELETE" and path.endswith(".parquet") and not undone:
            undone.append(path)
            (run,) = delta.quarantined()
            cleaned(delta, undo=run)

    delta.server.before = undo
    cleaned(delta, now())
    assert undone
    nothing_is_lost(delta, before)


def test_a_file_that_another_writer_takes_up_meanwhile_comes_back(delta):
    """As a restore to an older version does, by a commit that adds it again."""
    before, client, added = delta.everything(), delta.server.client, []
    lines = before[f"{delta.top}/_delta_log/{0:020d}.json"].splitlines()
    add = next(json.loads(line) for line in lines if b'"add"' in line)

    def restore(method, path):
        if method == "COPY" and FOLDER in path and not added:
            added.append(f"{delta.top}/{add['add']['path']}")
            log = f"{delta.top}/_delta_log/{4:020d}.json"
            client.put_object(Bucket="box", Key=log, Body=json.dumps(add).encode())

    delta.server.before = restore
    done = cleaned(delta, now())
    assert any("1 files were brought back" in note for note in done.notes)
    assert delta.everything()[added[0]] == before[added[0]]
    assert len(done.files) == 3


def test_a_file_that_somebody_writes_to_meanwhile_stays(delta):
    before, written = delta.everything(), []

    def write(method, path):
        if method == "HEAD" and FOLDER in path and path.rpartition("/")[2].isdecimal() and not written:
            key = next(key for key in before if key.endswith("left.parquet"))
            written.append(key)
            delta.server.client.put_object(Bucket="box", Key=key, Body=b"right")

    delta.server.before = write
    done = cleaned(delta, now())
    assert any("somebody else writes to it" in note for note in done.notes)
    assert delta.everything()[written[0]] == b"right"


# --- hostile, and refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../other", "/box/other", "a//b", f"{FOLDER}/x"])
def test_a_manifest_that_names_a_place_outside_is_refused(delta, path):
    done = cleaned(delta, now())
    key = f"{delta.top}/{FOLDER}/{done.run}/manifest.jsonl"
    lines = [json.loads(line) for line in delta.server.content()[key].splitlines()]
    lines[1]["path"] = path
    text = "".join(json.dumps(line) + "\n" for line in lines)
    delta.server.client.put_object(Bucket="box", Key=key, Body=text.encode())
    before = delta.server.content()
    for asked in ({"undo": done.run}, {"purge": True}):
        with pytest.raises(TableError, match="outside of the table"):
            cleaned(delta, now(), **asked)
    assert delta.server.content() == before


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe"])
def test_a_manifest_that_cant_be_read_is_an_error(delta, body):
    done = cleaned(delta, now())
    delta.server.client.put_object(Bucket="box", Key=f"{delta.top}/{FOLDER}/{done.run}/manifest.jsonl", Body=body)
    with pytest.raises(TableError, match="can't be read"):
        cleaned(delta, undo=done.run)


def test_a_run_that_isnt_there_is_named_with_those_that_are(delta):
    done = cleaned(delta, now())
    for wrong in ("../..", "20200101-000000-00000000", "", "x" * 300):
        with pytest.raises(ZonalError, match=f"There is no run.*{done.run}"):
            cleaned(delta, undo=wrong)


def test_paths_with_odd_characters_are_moved_as_they_are(server, tmp_path):
    odd = telemetry(20).set_column(4, "p", [["a b/c", "50% off?", "ü=#+&", "a b/c"] * 5])
    table = stored_home("delta", server, tmp_path).make([odd], partition_by=["p"])
    table.cluster(by=["x"])
    before = table.everything()
    done = cleaned(table, now())
    assert len(done.files) == 3
    assert gone(table, before) == paths(table, done)
    cleaned(table, undo=done.run)
    assert not gone(table, before)


def test_without_obstore_files_are_listed_and_not_moved(delta, monkeypatch):
    monkeypatch.setattr(objects, "find_spec", lambda _: None)
    assert len(cleaned(delta, now(), yes=False).files) == 4
    before = delta.server.content()
    for asked in ({}, {"undo": "x"}, {"purge": True}):
        with pytest.raises(TableError, match=r"zonal\[stores\].*can be listed"):
            cleaned(delta, now(), **asked)
    assert delta.server.content() == before


def test_a_storage_without_a_way_to_move_files_is_refused():
    with pytest.raises(TableError, match=r"can't be moved.*hdfs://"):
        quarantine.place_of(Storage("hdfs://host/table", {}))
