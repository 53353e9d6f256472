"""A rewrite keeps a Delta table's features: row tracking, timestamps, column mapping and more."""

import json
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.delta_commits import actions, bodies, theirs
from support.delta_rewrites import LAYOUT, bitmap, data_file, prepare, read_rows, rows_of, stored_vector
from support.delta_tables import ADD, CHECKPOINT, features, field, metadata, protocol, struct
from zonal.errors import ConflictError, TableError
from zonal.layouts.layout import Layout
from zonal.tables.delta.table import DeltaTable

# --- features ---------------------------------------------------------------------------------------------------------


ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_version",
}


def domain(name, configuration, *, removed=False):
    return {"domainMetadata": {"domain": name, "configuration": json.dumps(configuration), "removed": removed}}


def tracked_table(log, configuration):
    head = (
        protocol(1, 7, writer_features=["rowTracking", "domainMetadata"]),
        metadata(field("x", "long"), configuration=configuration),
        domain("delta.rowTracking", {"rowIdHighWaterMark": 19}),
    )
    first = data_file(log, "a", pa.table({"x": range(10)}), baseRowId=0, defaultRowCommitVersion=0)
    second = data_file(log, "b", pa.table({"x": range(10, 20)}), baseRowId=10, defaultRowCommitVersion=0)
    return log.commit(*head, first, second)


def row_ids(log):
    table = DeltaTable(str(log))
    snapshot = table.snapshot()
    rows = pa.concat_tables(read_rows(table.scan(snapshot, np.arange(len(snapshot.files)))))
    return sorted(zip(*(rows[name].to_pylist() for name in ("x", "_id", "_version")), strict=True))


def test_row_ids_and_versions_stay(log):
    before = row_ids(tracked_table(log, ROW_TRACKING))
    table, rewrite = prepare(log)
    rewrite = type(rewrite)(rewrite.base, rewrite.removed, rewrite.added[::-1], rewrite.layout, rewrite.run)
    version = table.commit(rewrite)
    assert row_ids(log) == before
    assert [add["baseRowId"] for add in bodies(log, version, "add")] == [20, 30], "ids are never given twice"
    assert {add["defaultRowCommitVersion"] for add in bodies(log, version, "add")} == {version}
    assert bodies(log, version, "domainMetadata") == [
        domain("delta.rowTracking", {"rowIdHighWaterMark": 39})["domainMetadata"]
    ]
    assert bodies(log, version, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
    removed = {action["path"]: action for action in bodies(log, version, "remove")}
    assert (removed["b"]["baseRowId"], removed["b"]["defaultRowCommitVersion"]) == (10, 0)
    assert all("_id" not in add["stats"] for add in bodies(log, version, "add")), "no statistics of hidden columns"


def test_row_ids_are_given_where_tracking_is_supported_but_not_enabled(log):
    tracked_table(log, {})
    table, rewrite = prepare(log)
    log.commit(domain("delta.rowTracking", {"rowIdHighWaterMark": 99}))
    version = table.commit(rewrite)
    assert [add["baseRowId"] for add in bodies(log, version, "add")] == [100, 110], "the newest mark counts"
    assert "tags" not in bodies(log, version, "commitInfo")[0]
    assert pq.read_schema(rewrite.added[0].path).names == ["x"]


def test_row_ids_are_not_given_while_tracking_is_suspended(log):
    tracked_table(log, {"delta.rowTrackingSuspended": "true"})
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    assert all("baseRowId" not in add for add in bodies(log, version, "add"))
    assert bodies(log, version, "domainMetadata") == []


def test_marks_of_rows_come_from_a_checkpoint_too(log):
    tracked_table(log, ROW_TRACKING)
    add = pa.struct([*ADD, pa.field("baseRowId", pa.int64()), pa.field("defaultRowCommitVersion", pa.int64())])
    text = pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()})
    schema = CHECKPOINT.set(CHECKPOINT.get_field_index("add"), pa.field("add", add))
    log.checkpoint(*actions(log, 0), schema=schema.append(pa.field("domainMetadata", text))).forget(0)
    before = row_ids(log)
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    assert [add["baseRowId"] for add in bodies(log, version, "add")] == [20, 30]
    assert row_ids(log) == before


def test_in_commit_timestamps_rise(log):
    configuration = {"delta.enableInCommitTimestamps": "true"}
    far = int(time.time() * 1000) + 10**9
    head = (
        protocol(1, 7, writer_features=["inCommitTimestamp"]),
        metadata(field("x", "long"), configuration=configuration),
    )
    log.commit({"commitInfo": {"inCommitTimestamp": far}}, *head, data_file(log, "a", pa.table({"x": [1]})))
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    first = next(iter(actions(log, version)[0].items()))
    assert first[0] == "commitInfo"
    assert first[1]["inCommitTimestamp"] == far + 1
    table, rewrite = prepare(log, run="r2")
    log.commit({"commitInfo": {"inCommitTimestamp": far + 50}}, data_file(log, "b", pa.table({"x": [2]})), version=2)
    assert bodies(log, table.commit(rewrite), "commitInfo")[0]["inCommitTimestamp"] == far + 51
    log.commit({"commitInfo": {}}, version=4)
    table, rewrite = prepare(log, run="r3")
    with pytest.raises(TableError, match="in-commit timestamps"):
        table.commit(rewrite)


def test_liquid_tables_keep_their_columns_and_know_the_provider(log):
    clustering = domain("delta.clustering", {"clusteringColumns": [["x"]]})
    head = (
        protocol(1, 7, writer_features=["clustering", "domainMetadata"]),
        metadata(field("x", "long")),
        clustering,
    )
    log.commit(*head, data_file(log, "a", pa.table({"x": [1]}), clusteringProvider="liquid"))
    table, rewrite = prepare(log)
    version = table.commit(rewrite)
    assert bodies(log, version, "add")[0]["clusteringProvider"] == "zonal"
    assert bodies(log, version, "domainMetadata") == [], "a commit that doesn't mention a domain keeps it"


def test_a_v2_checkpoint_is_rewritten_with_all_fields_of_its_files(log):
    head = [features("v2Checkpoint", "deletionVectors"), metadata(field("x", "long"))]
    vector = stored_vector(log, [0])
    file = data_file(log, "a", pa.table({"x": range(3)}), deletionVector=vector, tags={"k": "v"})
    log.commit(*head, file)
    sidecar = log.sidecar("one.parquet", file)
    middle = ".11111111-1111-1111-1111-111111111111"
    log.checkpoint(*head, sidecar, {"checkpointMetadata": {"version": 0}}, middle=middle).forget(0)
    table, rewrite = prepare(log)
    (removed,) = bodies(log, table.commit(rewrite), "remove")
    assert removed["deletionVector"] == vector
    assert removed["tags"] == {"k": "v"}
    assert rows_of(log) == [1, 2]


def test_mapped_columns_keep_physical_names_in_files_and_statistics(log):
    def mapped(name, number, kind, physical):
        both = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
        return field(name, kind, metadata=both)

    columns = (mapped("x", 1, "long", "c-1"), mapped("g", 2, struct(mapped("y", 3, "string", "c-3")), "c-2"))
    configuration = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"c-1": [5, 3], "c-2": pa.array([{"c-3": "b"}, {"c-3": "a"}])})
    log.commit(protocol(2, 5), metadata(*columns, configuration=configuration), data_file(log, "a", rows))
    table, rewrite = prepare(log, layout=Layout("zorder", ("x", "g.y")), halves=1)
    version = table.commit(rewrite)
    found = json.loads(bodies(log, version, "add")[0]["stats"])
    assert found["minValues"] == {"c-1": 3, "c-2": {"c-3": "a"}}
    assert found["nullCount"] == {"c-1": 0, "c-2": {"c-3": 0}}
    file = pq.ParquetFile(rewrite.added[0].path).schema_arrow
    assert file.names == ["c-1", "c-2"]
    assert [file.field(n).metadata[b"PARQUET:field_id"] for n in (0, 1)] == [b"1", b"2"]
    assert file.field(1).type.field(0).metadata[b"PARQUET:field_id"] == b"3"
    assert theirs(log) == rows_of(log) == [3, 5]


def test_an_append_to_an_identity_column_is_no_conflict(log):
    def head(mark):
        return metadata(field("x", "long", metadata={"delta.identity.start": 1, "delta.identity.highWaterMark": mark}))

    old = protocol(1, 7, writer_features=["identityColumns"])
    log.commit(old, head(1), data_file(log, "a", pa.table({"x": [1]})))
    table, rewrite = prepare(log)
    log.commit(head(2), data_file(log, "b", pa.table({"x": [2]})))
    version = table.commit(rewrite)
    assert rows_of(log) == [1, 2]
    assert '"delta.identity.highWaterMark": 2' in bodies(log, version, "metaData")[0]["schemaString"]


def test_an_unknown_feature_is_refused_by_name_whatever_the_snapshot_says(log):
    log.commit(protocol(), metadata(field("x", "long")), data_file(log, "a", pa.table({"x": [1]})))
    table, rewrite = prepare(log)
    log.commit(protocol(1, 7, writer_features=["futureThing"]))
    with pytest.raises(ConflictError, match="protocol"):
        table.commit(rewrite)
    broken = type(rewrite)(table.newest().snapshot(), rewrite.removed, rewrite.added, LAYOUT, "r")
    with pytest.raises(TableError, match="futureThing"):
        table.commit(broken)


def test_an_append_only_table_may_be_rewritten(log):
    head = metadata(field("x", "long"), configuration={"delta.appendOnly": "true"})
    log.commit(protocol(), head, data_file(log, "a", pa.table({"x": [2, 1]})))
    table, rewrite = prepare(log)
    table.commit(rewrite)
    assert theirs(log) == [1, 2]


# --- new tables -------------------------------------------------------------------------------------------------------


def test_vectors_of_these_tests_are_what_deltas_files_hold():
    assert bitmap([1])[:4] == (1681511377).to_bytes(4, "little")
