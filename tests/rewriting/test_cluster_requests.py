"""What `cluster` refuses before any work, what it warns of, and what its result says of the files that stay."""

import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import zonal
from support.cluster_options import grouped
from support.cluster_tables import home, parts_of, telemetry
from support.local_runner import run_here
from zonal.cli import app
from zonal.errors import TableError, ZonalError

KINDS = ["delta", "iceberg v2"]


def never(*_):
    raise AssertionError("the work began")


def text_of(table, *more):
    return CliRunner().invoke(app, ["cluster", table.name, "--by", "x,y", *more]).output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": 5}, "by=5 is not a text, a sequence of texts, or None."),
        ({"by": ["x", 5]}, "is not a text, a sequence of texts, or None."),
        ({"by": b"x"}, "is not a text, a sequence of texts, or None."),
        ({"layout": 5}, "layout=5 is not a text, a Layout, or None."),
        (
            {"by": "x", "target_file_size": 1.5},
            "target_file_size=1.5 is not a number of bytes, or a text such as '64MB'",
        ),
        ({"by": "x", "commit_every": True}, "scope=Scope(commit_every=True) is not a number of bytes"),
        ({"by": "x", "where": 5}, "where=5 is not a text, or None."),
        ({"by": "x", "compression": 5}, "compression=5) is not a text, or None."),
        ({"by": "x", "full": "yes"}, "scope=Scope(full='yes') is not True or False."),
        ({"by": "x", "queries": 5}, "queries=5 is not a workload, logs, or paths of logs, or None."),
        ({"by": "x", "storage_options": ["a"]}, "is not a mapping of texts to texts, or None."),
    ],
)
def test_arguments_of_wrong_types_are_refused_by_name_before_any_work(tmp_path, given, message):
    table = home("delta", tmp_path).make([telemetry(100)])
    before = table.listing()
    for act in (lambda: table.cluster(runner=never, **given), lambda: table.plan(**given)):
        with pytest.raises(ZonalError) as raised:
            act()
        assert message in str(raised.value)
    assert table.listing() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"into": 5}, "into=5 is not a text, or None."),
        ({"master": 5}, "master=5) is not a text, or None."),
        ({"conf": {"a": 5}}, "is not a mapping of texts to texts, or None."),
        ({"progress": 5}, "progress=5 is not a function, or None."),
        ({"spark": 5}, "spark=5 is not a Spark session, a Spark(…), or a function."),
        ({"files": "64MB"}, "files='64MB' is not a NewFiles, or None."),
        ({"scope": 5}, "scope=5 is not a Scope, or None."),
        ({"verify": 1}, "files=NewFiles(verify=1) is not True or False."),
        ({"database": False}, "database=False is not the URL of a history, an open one, or None."),
    ],
)
def test_arguments_of_a_run_of_wrong_types_are_refused_by_name_before_any_work(tmp_path, given, message):
    table = home("delta", tmp_path).make([telemetry(100)])
    before = table.listing()
    with pytest.raises(ZonalError) as raised:
        zonal.cluster(table.name, by="x", **grouped(**({"spark": never} | given)))
    assert message in str(raised.value)
    assert table.listing() == before


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_destination_with_a_file_in_its_way_is_refused_before_any_work(tmp_path, kind):
    table = home("delta", tmp_path).make([telemetry(100)])
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TableError, match=r"file.*(Not a directory|can't|Can't)"):
        table.cluster(by="x", into=f"{kind}:{tmp_path / 'file' / 'copy'}", runner=never)


@pytest.mark.parametrize("into", ["delta", "parquet", None])
def test_a_place_that_takes_no_files_is_refused_before_any_work(tmp_path, monkeypatch, into):
    """As /proc, or a disk that is mounted for reading alone: rights say nothing of it."""
    table = home("delta", tmp_path).make([telemetry(100)])
    before = table.listing()
    real = Path.mkdir

    def mkdir(self, *given, **named):
        if self.name.startswith(".zonal-"):
            raise OSError(errno.EROFS, "Read-only file system", str(self))
        return real(self, *given, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    asked = {} if into is None else {"into": f"{into}:{tmp_path / 'new' / 'copy'}"}
    with pytest.raises(TableError, match=r"Nothing can be written to .*: Read-only file system"):
        table.cluster(by="x", runner=never, **asked)
    assert table.listing() == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("into", ["delta", "parquet"])
def test_the_look_whether_a_place_can_be_written_leaves_nothing(tmp_path, into):
    table = home("delta", tmp_path / "t").make([telemetry(100)])
    table.cluster(by="x", into=f"{into}:{tmp_path / 'new'}")
    assert not list(tmp_path.rglob(".zonal-*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "t"]


def test_a_page_that_cant_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    table = home("delta", tmp_path).make([telemetry(100)])
    before, page = table.listing(), tmp_path / "page.html"
    real = Path.open

    def opened(self, *given, **named):
        if self == page:
            raise OSError(errno.EROFS, "Read-only file system", str(self))
        return real(self, *given, **named)

    monkeypatch.setattr(Path, "open", opened)
    result = CliRunner().invoke(app, ["cluster", table.name, "--by", "x", "--report", str(page)])
    assert result.exit_code != 0
    assert "Read-only file system" in f"{result.output}{result.exception}"
    assert table.listing() == before


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_far_below_a_file_are_told_in_the_plan_before_the_start_and_in_the_result(tmp_path, kind):
    table = home(kind, tmp_path).make(parts_of(telemetry(400), 2), ["p"])
    steps = []
    plan = table.plan(by=["x", "y"])
    done = table.cluster(by=["x", "y"], progress=steps.append)
    for said in (plan.note, done.note, *(step.notice for step in steps if step.notice)):
        assert said.startswith("There is little to gain: each of ")
        assert "one file" in said
    assert [step.name for step in steps if step.notice] == ["planning"]


@pytest.mark.parametrize("keys", [[], ["p"]])
def test_partitions_of_several_files_are_no_reason_for_a_warning(tmp_path, keys):
    table = home("delta", tmp_path).make(parts_of(telemetry(4000), 2), keys)
    assert table.plan(by=["x", "y"], target_file_size=2000).note == ""
    assert table.cluster(by=["x", "y"], target_file_size=2000).note == ""


def test_a_dry_run_prints_that_there_is_little_to_gain(tmp_path):
    table = home("delta", tmp_path).make(parts_of(telemetry(400), 2), ["p"])
    assert "note          There is little to gain" in text_of(table, "--dry-run")


@pytest.mark.parametrize(
    ("kind", "how"),
    [("delta", "VACUUM delta.`"), ("iceberg v2", "CALL CATALOG.system.expire_snapshots('db.t')")],
)
def test_the_result_says_which_files_stay_and_what_removes_them(tmp_path, kind, how):
    from zonal.report.clustering import clustering_facts
    from zonal.report.machine.json_form import to_json

    table = home(kind, tmp_path).make(parts_of(telemetry(400), 3))
    done = table.cluster(by=["x", "y"])
    said = dict(clustering_facts(done))["old files"]
    assert said.startswith("3 files, ")
    assert "stay" in said
    assert how in said
    assert said.endswith("or until zonal clean --expire 7d sets them aside")
    far = replace(done, location="hdfs://lake/t")
    assert "zonal clean" not in dict(clustering_facts(far))["old files"], "it moves nothing there"
    assert "old_files_until" not in json.loads(to_json(done)), "it is for people"
    copied = table.cluster(by=["x"], into=f"delta:{tmp_path / 'copy'}")
    assert "old files" not in dict(clustering_facts(copied)), "a copy replaces nothing"


@pytest.mark.parametrize(("asked", "stored"), [("snappy", "snappy"), ("none", "uncompressed"), (None, None)])
def test_a_new_iceberg_table_keeps_the_codec_that_was_asked_for(tmp_path, asked, stored):
    table = home("iceberg v2", tmp_path).make([telemetry(100)])
    table.cluster(by="x", into="iceberg:db.copy", compression=asked)
    made = table.catalog.load_table("db.copy")
    expected = made.properties.get("write.parquet.compression-codec")
    assert expected == stored or (stored is None and expected == "zstd")
    for task in made.scan().plan_files():
        codec = pa.parquet.read_metadata(task.file.file_path.removeprefix("file://")).row_group(0).column(0).compression
        assert codec == {"snappy": "SNAPPY", "none": "UNCOMPRESSED", None: "ZSTD"}[asked]


def test_a_partition_of_nan_is_named_where_a_copy_cant_have_it(tmp_path):
    rows = pa.table({"x": np.arange(4), "f": [1.0, 1.0, float("nan"), float("nan")]})
    table = home("delta", tmp_path).make([rows], ["f"])
    with pytest.raises(TableError, match=r"partition column 'f' of .* is NaN, by which a copy can't be partitioned"):
        table.cluster(by="x", into=f"delta:{tmp_path / 'copy'}", runner=never)


@pytest.mark.parametrize("into", ["parquet:{}/copy", "delta:{}/a/copy"])
def test_a_copy_inside_of_its_source_is_refused(tmp_path, into):
    """A folder's files are its rows: those of the copy would count twice."""
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"x": [3, 1, 2]}), tmp_path / "t" / "a.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "t")
    for source in ("t", "link"):
        with pytest.raises(TableError, match=r"copy' is inside of .*Choose a place outside"):
            zonal.cluster(str(tmp_path / source), by="x", into=into.format(tmp_path / "t"), spark=run_here)
    assert [path.name for path in (tmp_path / "t").rglob("*")] == ["a.parquet"]
    done = zonal.cluster(str(tmp_path / "t"), by="x", into=f"parquet:{tmp_path}/t2", spark=run_here)
    assert done.change.rows == 3
