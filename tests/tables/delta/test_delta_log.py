"""The log of a Delta table is replayed from commits and checkpoints of every kind."""

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from support.delta_snapshots import HEAD, names, of, read
from support.delta_tables import add, features, field, metadata, protocol, remove, stats, struct, vector
from zonal.errors import TableError
from zonal.layouts.layout import Layout
from zonal.snapshot import UNKNOWN
from zonal.tables.delta import log as deltalog

UTC = timezone.utc


def test_deletion_vectors_are_part_of_a_files_name(log):
    text = stats(10, {"x": 1}, {"x": 9}, {"x": 3}, tightBounds=False)
    log.commit(features("deletionVectors"), HEAD[1], add("a", stats=stats(10)), add("b", stats=stats(10)))
    log.commit(remove("a"), add("a", stats=text, deletionVector=vector("v1", cardinality=2)))
    snapshot = read(log)
    assert names(snapshot) == ["a", "b"]
    assert dict(zip(names(snapshot), snapshot.files.deleted[::-1], strict=True)) == {"a": 2, "b": 0}
    assert snapshot.files.delete_files.tolist() == [0, 1]
    log.commit(remove("a", deletionVector=vector("v1")), add("a", stats=text, deletionVector=vector("v1", offset=9)))
    log.commit(remove("a", deletionVector=vector("v1")))
    assert names(read(log)) == ["a", "b"], "the vector at the old offset was gone already"
    log.commit(remove("a", deletionVector=vector("v1", offset=9)))
    assert names(read(log)) == ["b"]
    assert names(read(log, version=0)) == ["a", "b"]


def test_commits_change_what_a_checkpoint_holds(log):
    one = vector("v1")
    head = (features("deletionVectors"), HEAD[1])
    log.commit(*head).checkpoint(*head, add("a"), add("b", deletionVector=one), add("c"), add("d"), remove("old"))
    log.commit(remove("a"), remove("b"), add("d", size=7, stats=stats(1)), add("e"))
    snapshot = read(log)
    assert names(snapshot) == ["b", "c", "d", "e"], "b without its vector was not the file that is there"
    assert snapshot.files.added_by.tolist() == [UNKNOWN, UNKNOWN, 1, 1]
    assert snapshot.files.sizes.tolist() == [1000, 1000, 7, 1000]


def test_multi_part_checkpoints_count_only_when_complete(log):
    log.commit(*HEAD, add("a"), add("b"))
    log.checkpoint(*HEAD, add("a"), middle=f".{1:010d}.{2:010d}")
    log.forget(0)
    with pytest.raises(TableError, match="has no commit and no checkpoint"):
        read(log)
    log.checkpoint(add("b"), middle=f".{2:010d}.{2:010d}")
    assert names(read(log)) == ["a", "b"]


UUID = ".80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.mark.parametrize(("kind", "middle"), [("parquet", ""), ("parquet", UUID), ("json", UUID)])
def test_v2_checkpoints_have_sidecars(log, kind, middle):
    head = (features("v2Checkpoint"), HEAD[1])
    log.commit(*head, add("a"), add("b"), add("c"))
    first = log.sidecar("one.parquet", add("a", stats=stats(1, {"x": 1}, {"x": 1})))
    second = log.sidecar("two.parquet", add("b", tags={"zonal.layout": "abc"}))
    log.checkpoint({"checkpointMetadata": {"version": 0}}, *head, first, second, middle=middle, kind=kind).forget(0)
    log.commit(remove("a"), add("d"))
    snapshot = read(log)
    assert names(snapshot) == ["b", "d"]
    assert snapshot.files.layout_ids.to_pylist() == ["abc", None]
    assert names(read(log, version=0)) == ["a", "b"]
    assert of(read(log, version=0), "x")[:2] == (1, 1)


def test_a_missing_sidecar_is_named(log):
    gone = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 0}}
    log.commit(*HEAD).checkpoint(*HEAD, gone).forget(0)
    with pytest.raises(TableError, match=r"gone\.parquet"):
        read(log)


def second(log):
    return log.log / f"{2:020d}.checkpoint.parquet"


def torn(path):
    path.write_bytes(path.read_bytes()[:-20])


GONE = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 0}}
TEARS = {
    "torn": lambda log: torn(second(log)),
    "empty": lambda log: second(log).write_bytes(b""),
    "zeros": lambda log: second(log).write_bytes(bytes(second(log).stat().st_size)),
    "without a sidecar": lambda log: log.checkpoint(*HEAD, GONE),
    "with a torn sidecar": lambda log: (
        log.checkpoint(*HEAD, log.sidecar("s.parquet", add("a"))),
        torn(log.log / "_sidecars" / "s.parquet"),
    ),
}


@pytest.mark.parametrize("older", ["a checkpoint", "commits alone"])
@pytest.mark.parametrize("tear", TEARS)
def test_a_checkpoint_that_cannot_be_read_is_not_needed_where_older_files_tell_the_same(log, tear, older):
    tracked = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}
    log.commit(*HEAD, add("a", stats=stats(3, {"x": 1}, {"x": 5})), add("b"))
    if older == "a checkpoint":
        log.checkpoint(*HEAD, add("a", stats=stats(3, {"x": 1}, {"x": 5})), add("b"))
    log.commit(remove("b"), add("c"), tracked).commit(metadata(field("x", "long"), configuration={"k": "v"}))
    expected = read(log)
    log.checkpoint(features(), HEAD[1], add("wrong"))
    TEARS[tear](log)
    found = read(log)
    assert names(found) == names(expected) == ["a", "c"]
    assert of(found, "x") == of(expected, "x")
    assert found.files.added_by.tolist() == expected.files.added_by.tolist() == [0, 1]
    assert found.properties == expected.properties == {"k": "v"}
    assert found.commits == expected.commits
    assert any("can't be read" in problem for problem in found.problems), "the broken file is told"
    assert expected.problems == ()


def test_a_checkpoint_that_cannot_be_read_is_an_error_where_commits_are_missing(log):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b"))
    (log.log / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1 no")
    assert names(read(log)) == ["a", "b"]
    log.forget(0)
    with pytest.raises(TableError, match=r"0001\.checkpoint\.parquet.* The commit of version 0 is missing"):
        read(log)


def test_a_dotted_name_means_the_top_level_column(log):
    fields = (field("a", struct(field("b", "long"))), field("a.b", "long"))
    text = stats(1, {"a": {"b": 1}, "a.b": 2}, {"a": {"b": 1}, "a.b": 2}, {})
    assert of(read(log.commit(protocol(), metadata(*fields), add("f", stats=text))), "a.b")[:2] == (2, 2)


def test_every_type_of_the_protocol_has_an_arrow_type(log):
    kinds = ["string", "long", "integer", "short", "byte", "float", "double", "decimal(38,10)", "boolean", "binary"]
    kinds += ["date", "timestamp", "timestamp_ntz", "varchar(10)", "char(3)", "void", "variant"]
    kinds += [{"type": "array", "elementType": struct(field("e", "long")), "containsNull": False}]
    kinds += [{"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}]
    fields = [field(f"c{number}", kind) for number, kind in enumerate(kinds)]
    snapshot = read(log.commit(features("timestampNtz", "variantType"), metadata(*fields), add("f", stats=stats(3))))
    assert "c15" not in snapshot.schema.names, "void columns aren't in the files"
    assert snapshot.schema.field("c7").type == pa.decimal128(38, 10)
    assert snapshot.schema.field("c11").type == pa.timestamp("us", "UTC")
    assert snapshot.schema.field("c13").type == pa.string()
    assert str(snapshot.schema.field("c18").type) == "map<string, double>"
    assert "c16.value" in snapshot.physical
    for name, bounds in snapshot.files.bounds.items():
        assert (bounds.lower[0].as_py(), bounds.upper[0].as_py(), bounds.nulls[0]) == (None, None, UNKNOWN), name


@pytest.mark.parametrize("kind", ["geometry", "decimal(99,1)", {"type": "union"}])
def test_an_unknown_type_is_an_error(log, kind):
    with pytest.raises(TableError, match="schema can't be read"):
        read(log.commit(protocol(), metadata(field("c", kind))))


def test_layouts_and_providers_are_found(log):
    layout = Layout.parse("zorder(x, s)")
    head = metadata(*(field("x", "long"),), configuration={"zonal.layout": layout.to_json(), "k": "v"})
    snapshot = read(
        log.commit(protocol(), head, add("f", tags={"zonal.layout": layout.id}, clusteringProvider="liquid"))
    )
    assert snapshot.layout == layout
    assert snapshot.files.layout_ids.to_pylist() == [layout.id]
    assert snapshot.properties["k"] == "v"
    assert snapshot.properties["clusteringProvider"] == "1"


def test_an_unreadable_layout_is_a_problem_and_no_error(log):
    snapshot = read(log.commit(protocol(), metadata(field("x", "long"), configuration={"zonal.layout": "{}"})))
    assert snapshot.layout is None
    assert "zonal.layout" in snapshot.problems[0]
    assert len(snapshot.files) == 0
    assert snapshot.files.bounds["x"].lower.to_pylist() == []


def test_in_commit_timestamps_come_first(log):
    info = {
        "inCommitTimestamp": 1000,
        "timestamp": 5,
        "operation": "WRITE",
        "operationParameters": {"mode": "x", "n": [1]},
    }
    log.commit({"commitInfo": info | {"userName": "somebody", "engineInfo": "e"}}, *HEAD)
    log.commit({"commitInfo": {"timestamp": 86_400_000}})
    log.commit(add("f"))
    snapshot = read(log)
    assert snapshot.commits[0].time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert snapshot.commits[0].details == {"mode": "x", "n": "[1]", "engineInfo": "e"}
    assert snapshot.commits[1].time == datetime(1970, 1, 2, tzinfo=UTC)
    assert snapshot.time is not None
    assert snapshot.time > datetime(2020, 1, 1, tzinfo=UTC), "no commitInfo: the time of the file"


def test_history_before_a_checkpoint_is_read_up_to_a_limit(log, monkeypatch):
    log.commit(*HEAD, add("a")).commit(add("b")).checkpoint(*HEAD, add("a"), add("b"))
    log.log.joinpath(f"{0:020d}.json").write_text(
        '{"add":{"path":"a"}}\n{"add": broken\n{"commitInfo":{"operation":"X"}}'
    )
    assert read(log).files.added_by.tolist() == [0, 1]
    assert read(log).commits[0].operation == "X"
    monkeypatch.setattr(deltalog, "HISTORY_BYTES", 10)
    assert read(log).files.added_by.tolist() == [UNKNOWN, UNKNOWN]
