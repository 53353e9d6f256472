"""Pictures of the verbs: drawn on request, over the columns that matter, and with what queries read."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal
from support.cluster_tables import home, parts_of, telemetry
from zonal.report.machine.json_form import to_json
from zonal.tables.registry import open_table
from zonal.verbs.show import health_of

QUERIES = [
    "SELECT * FROM t WHERE x = 421;",
    "SELECT * FROM t WHERE x BETWEEN 777 AND 781 AND y > 0.5;",
    "SELECT count(*) FROM t WHERE y BETWEEN -0.125 AND -0.0625;",
]


@pytest.fixture
def delta(tmp_path):
    return home("delta", tmp_path).make(parts_of(telemetry(4000), 8))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of which each has its own ids, and a column without an order."""
    path = tmp_path_factory.mktemp("pictures") / "t"
    path.mkdir()
    for number in range(6):
        ids = range(number * 100, number * 100 + 100)
        pq.write_table(pa.table({"id": ids, "x": np.arange(100) % 7, "s": ["a", "b"] * 50}), path / f"{number}.parquet")
    return path


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "queries.sql"
    path.write_text("\n".join(QUERIES * 3))
    return path


def test_small_tables_are_drawn_without_being_asked_for(folder, log, delta, monkeypatch):
    def drawn():
        yield zonal.show(str(folder))
        yield zonal.explain(str(folder), where="id = 3")
        yield zonal.advise(str(folder), queries=zonal.Logs([log], names=["t"]))
        yield zonal.audit(str(folder), queries=zonal.Logs([log], names=["t"]))
        yield delta.cluster(by=["x"], full=True)

    assert [found.picture is not None for found in drawn()] == [True] * 5
    monkeypatch.setattr("zonal.study.drawing.MOST_FILES", 3)
    assert [found.picture is not None for found in drawn()] == [False] * 4 + [True], "a rewrite has made few files"
    assert zonal.show(str(folder), display=zonal.Display(picture=True)).picture is not None


def test_where_none_is_wanted_there_is_no_picture(folder, log):
    assert zonal.show(str(folder), display=zonal.Display(picture=False)).picture is None
    assert zonal.explain(str(folder), where="id = 3", display=zonal.Display(picture=False)).picture is None
    assert zonal.advise(str(folder), queries=[log], display=zonal.Display(picture=False)).picture is None


def test_show_draws_its_columns(folder):
    found = zonal.show(str(folder), columns=["x", "id"], display=zonal.Display(picture=True))
    assert [axis.column for axis in found.picture.axes] == ["x", "id"]
    (now,) = found.picture.drawings
    assert (now.label, now.files, now.bytes) == ("now", 6, found.table.bytes)
    assert (now.low["id"][1:] > now.high["id"][:-1]).all(), "files follow each other in id …"
    assert (now.low["x"] == now.low["x"][0]).all(), "… and all lie over each other in x"
    assert found.picture.questions == ()


def test_health_of_a_snapshot_draws_too(folder):
    snapshot = open_table(str(folder)).snapshot()
    assert health_of(snapshot).picture is None
    assert health_of(snapshot, ["id"], picture=True).picture.axes[0].column == "id"


def test_explain_draws_its_columns_first_and_the_query_as_a_box(folder):
    found = zonal.explain(str(folder), where="x >= 0 AND id BETWEEN 220 AND 330", display=zonal.Display(picture=True))
    columns = [axis.column for axis in found.picture.axes]
    assert sorted(columns[:2]) == ["id", "x"]
    (question,) = found.picture.questions
    assert question.text == "x >= 0 AND id BETWEEN 220 AND 330"
    assert question.reads[0].tolist() == [False, False, True, True, False, False]
    assert question.files == (2,)
    (low, high), now = question.boxes["id"][0], found.picture.drawings[0]
    assert now.low["id"][2] < low < now.high["id"][2], "220 lies within the third file"
    assert now.low["id"][3] < high < now.high["id"][3]


def test_a_query_over_one_column_gets_another_one_beside_it(folder):
    found = zonal.explain(str(folder), where="s = 'a'", display=zonal.Display(picture=True))
    assert found.picture.axes[0].column == "s"
    assert len(found.picture.axes) == 2


def test_a_table_without_files_has_no_picture(tmp_path):
    table = home("delta", tmp_path).make([telemetry(0)])
    assert zonal.show(table.name, display=zonal.Display(picture=True)).picture is None
    assert zonal.explain(table.name, where="x = 1", display=zonal.Display(picture=True)).picture is None


def test_a_picture_changes_no_number_and_no_equality(folder):
    with_one = zonal.show(str(folder), display=zonal.Display(picture=True))
    without = zonal.show(str(folder))
    assert with_one == without
    assert repr(with_one) == repr(without)
    assert to_json(with_one) == to_json(without)
    assert "picture" not in json.loads(to_json(with_one))


def test_advise_draws_the_columns_that_queries_filter_and_the_heaviest_queries(delta, log):
    found = zonal.advise(delta.name, queries=[log], display=zonal.Display(picture=True))
    assert {axis.column for axis in found.picture.axes} == {"x", "y"}
    asked = found.picture.questions
    assert len(asked) == len(QUERIES)
    assert [question.weight for question in asked] == sorted((question.weight for question in asked), reverse=True)
    assert sum(question.weight for question in asked) == pytest.approx(1)
    share = sum(question.weight * question.shares[0] for question in asked)
    assert share == pytest.approx(found.now.bytes), "the picture tells what the advice does"


def test_hidden_values_are_not_in_the_picture(delta, log):
    shown = zonal.advise(delta.name, queries=[log], display=zonal.Display(picture=True)).picture
    hidden = zonal.advise(delta.name, queries=[log], display=zonal.Display(hide_literals=True, picture=True)).picture
    assert any("421" in question.text for question in shown.questions)
    assert any(question.boxes for question in shown.questions)
    assert {question.text for question in hidden.questions} >= {"x = ?"}
    assert not any(question.boxes for question in hidden.questions)
    assert [question.files for question in hidden.questions] == [question.files for question in shown.questions]
    assert [axis.ticks for axis in hidden.axes] == [axis.ticks for axis in shown.axes], "round numbers stay"


def test_hidden_values_do_not_stand_at_the_axes_either(tmp_path):
    """A tree cuts where queries ask, so that files begin with what was asked for."""
    table = home("delta", tmp_path).make(parts_of(telemetry(4000), 8))
    log = tmp_path / "queries.sql"
    log.write_text(
        "\n".join(f"SELECT * FROM t WHERE s >= 'device-{n:04d}' AND s < 'device-{n + 9:04d}';" for n in (50, 90))
    )
    asked = {"layout": "tree", "queries": [log], "target_file_size": "16KB", "picture": True, "full": True}
    shown, hidden = (table.cluster(**asked, hide_literals=hide).picture for hide in (False, True))
    assert shown.axes[0].column == hidden.axes[0].column == "s"
    assert any("device-" in text for _, text in shown.axes[0].ticks)
    assert hidden.axes[0].ticks == ()


def test_show_and_explain_hide_values_too(tmp_path):
    table = home("delta", tmp_path).make(parts_of(telemetry(4000), 8))
    log = tmp_path / "queries.sql"
    log.write_text(
        "\n".join(f"SELECT * FROM t WHERE s >= 'device-{n:04d}' AND s < 'device-{n + 9:04d}';" for n in (50, 90))
    )
    table.cluster(layout="tree", queries=[log], target_file_size="16KB")
    condition = "s = 'device-0051' AND soundex(s) = 'device-0099'"
    for hide in (False, True):
        display = zonal.Display(picture=True, hide_literals=hide)
        results = zonal.show(table.name, display=display), zonal.explain(table.name, where=condition, display=display)
        assert ["device-" in to_json(result) + repr(result.picture) for result in results] == [not hide] * 2
    assert results[1].predicate == "s = ? AND something of s"
    assert len(results[1].unknown) == 1


def test_an_advice_that_knows_nothing_has_no_picture(folder, tmp_path):
    other = tmp_path / "other.sql"
    other.write_text("SELECT * FROM elsewhere WHERE id = 5")
    assert zonal.advise(str(folder), queries=[other], display=zonal.Display(picture=True)).picture is None


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_cluster_draws_before_and_after(tmp_path, kind):
    table = home(kind, tmp_path).make(parts_of(telemetry(4000), 8))
    done = table.cluster(by=["x", "y"], target_file_size="16KB", picture=True)
    before, after = done.picture.drawings
    assert [axis.column for axis in done.picture.axes] == ["x", "y"]
    assert (before.label, after.label) == ("before", "after")
    assert (before.files, after.files) == (done.lookups.files_before, done.lookups.files_after)
    assert after.version == done.run.versions[-1]
    wide, narrow = (area(drawing) for drawing in (before, after))
    assert narrow < 0.5 * wide, "rectangles become smaller"
    assert done.picture.questions == ()


def area(drawing):
    sides = [(drawing.high[name].astype(float) - drawing.low[name]) / 65535 for name in ("x", "y")]
    return float(np.mean(sides[0] * sides[1]))


def test_cluster_draws_the_queries_that_it_learned_from(delta, log):
    done = delta.cluster(layout="tree", queries=[log], target_file_size="16KB", picture=True)
    asked = done.picture.questions
    assert len(asked) == len(QUERIES)
    for when, share in enumerate((done.predicted.share_before, done.predicted.share_after)):
        assert sum(question.weight * question.shares[when] for question in asked) == pytest.approx(share)


def test_cluster_hides_what_its_queries_ask_for(delta, log):
    done = delta.cluster(layout="tree", queries=[log], target_file_size="16KB", picture=True, hide_literals=True)
    assert all("?" in question.text and not question.boxes for question in done.picture.questions)


def test_a_run_with_nothing_to_do_draws_the_table_once(delta):
    delta.cluster(by=["x", "y"], target_file_size="16KB")
    done = delta.cluster(picture=True)
    assert done.run.versions == ()
    assert [drawing.label for drawing in done.picture.drawings] == ["now"]


def test_a_copy_is_drawn_beside_its_source(delta, tmp_path):
    done = delta.cluster(by=["x"], into=f"parquet:{tmp_path / 'copy'}", target_file_size="16KB", picture=True)
    before, after = done.picture.drawings
    assert (before.files, after.files) == (8, done.change.added_files)
    assert done == replace(done, picture=None)
