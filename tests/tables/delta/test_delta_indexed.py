"""Readers of a Delta table use the statistics of all keys after `cluster`, whatever the table's properties left out."""

import json
from functools import partial

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import zonal
from support.cluster_tables import Delta, assert_same_rows
from support.delta_rewrites import prepare
from support.delta_tables import LogWriter, add, field, metadata, protocol, stats, struct
from support.local_runner import run_here
from zonal.errors import ConflictError, ZonalError
from zonal.layouts.layout import Layout
from zonal.tables.delta import indexed as deltaindex
from zonal.tables.delta.indexed import column_list, covering, indexed
from zonal.tables.delta.log import Metadata
from zonal.tables.delta.table import DeltaTable

COUNT, LIST = deltaindex.INDEXED_COUNT, deltaindex.STATS_COLUMNS
ARRAY = {"type": "array", "elementType": "long", "containsNull": True}


def table_of(*fields, partitioning=(), **configuration):
    named = {f"delta.{name}": value for name, value in configuration.items()}
    return Metadata(json.dumps(struct(*fields)), partitioning, named, {})


def longs(*names):
    return [field(name, "long") for name in names]


# --- counting ---------------------------------------------------------------------------------------------------------


def test_every_leaf_that_is_no_struct_counts_and_partition_columns_do_not():
    fields = [
        *longs("part"),
        field("l", ARRAY),
        field("v", "variant"),
        field("n", "void"),
        field("g", struct(*longs("a", "b"))),
        *longs("z"),
    ]
    found = partial(table_of, *fields, partitioning=("part",))
    assert indexed(found(dataSkippingNumIndexedCols="3")) == {("l",), ("v",), ("n",)}
    assert indexed(found(dataSkippingNumIndexedCols="4")) == {("l",), ("v",), ("n",), ("g", "a")}
    assert indexed(found(dataSkippingNumIndexedCols="0")) == frozenset()
    assert ("z",) in indexed(found(dataSkippingNumIndexedCols="-1"))


def test_named_columns_are_read_by_logical_names_and_given_by_physical_ones():
    mapped = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
    inner = {"delta.columnMapping.physicalName": "col-2", "delta.columnMapping.id": 2}
    fields = [field("g", struct(field("x y", "long", metadata=inner), *longs("z")), metadata=mapped), *longs("a")]
    found = {"columnMapping.mode": "name", "dataSkippingStatsColumns": "G.`x y`"}
    assert indexed(table_of(*fields, **found)) == {("col-1", "col-2")}
    found["dataSkippingStatsColumns"] = "g"
    assert indexed(table_of(*fields, **found)) == {("col-1", "col-2"), ("col-1", "z")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b.`c d`,`x``,y` ", [("a",), ("b", "c d"), ("x`,y",)]),
        ("", []),
        (" ", []),
        ("a,", None),
        ("a b", None),
        ("`a", None),
        ("a..b", None),
    ],
)
def test_lists_of_columns_are_read_as_sql_writes_them(text, expected):
    assert column_list(text) == expected


# --- what is changed --------------------------------------------------------------------------------------------------

WIDE = [f"c{number}" for number in range(100)]


def changed(found, *keys):
    return {each.name: (each.value, each.before) for each in covering(found, keys)}


def test_a_key_that_is_covered_changes_nothing():
    assert changed(table_of(*longs(*WIDE)), "c0", "c31") == {}
    assert changed(table_of(*longs(*WIDE), dataSkippingNumIndexedCols="-1"), "c99") == {}
    assert changed(table_of(*longs(*WIDE), dataSkippingStatsColumns="C99"), "c99") == {}
    nested = table_of(field("g", struct(*longs("a", "b"))), dataSkippingStatsColumns="g")
    assert changed(nested, "g.b") == {}, "a struct's name covers all below; a second name is a duplicate to Spark"


def test_the_number_is_raised_to_the_last_key():
    assert changed(table_of(*longs(*WIDE)), "c33", "c40") == {COUNT: ("41", None)}
    assert changed(table_of(*longs(*WIDE), dataSkippingNumIndexedCols="10"), "c12") == {COUNT: ("13", "10")}


def test_far_keys_are_named_with_all_that_was_covered():
    found = table_of(*longs(*WIDE), dataSkippingNumIndexedCols="2")
    assert changed(found, "c98", "c0") == {LIST: ("c0,c1,c98", None)}
    assert changed(table_of(*longs(*WIDE), dataSkippingNumIndexedCols="0"), "c98") == {LIST: ("c98", None)}


def test_far_keys_raise_the_number_where_a_covered_column_cannot_be_named():
    found = table_of(field("l", ARRAY), *longs(*WIDE), dataSkippingNumIndexedCols="2")
    assert changed(found, "c98") == {COUNT: ("100", "2")}, "a list would lose the nulls of the array"
    inside = table_of(field("g", struct(field("l", ARRAY))), *longs(*WIDE), dataSkippingNumIndexedCols="2")
    assert changed(inside, "c98") == {LIST: ("g.l,c0,c98", None)}


def test_a_list_gets_the_missing_keys_behind_it_with_odd_names_in_backticks():
    fields = [*longs("a", "b", "x,`y", "1st"), field("g", struct(*longs("p.q")))]
    found = table_of(*fields, dataSkippingStatsColumns="`a` ")
    assert changed(found, "x,`y", "a", "1st", "g.p.q") == {LIST: ("`a` ,`x,``y`,`1st`,g.`p.q`", "`a` ")}
    empty = table_of(*fields, dataSkippingStatsColumns="")
    assert changed(empty, "b") == {LIST: ("b", "")}


def test_what_spark_would_refuse_is_never_named():
    fields = [field("flag", "boolean"), field("raw", "binary"), *longs("a")]
    found = table_of(*fields, dataSkippingStatsColumns="a")
    assert changed(found, "flag", "raw") == {}
    assert changed(table_of(*fields, partitioning=("a",), dataSkippingStatsColumns=""), "a") == {}


def test_a_list_that_cannot_be_read_is_left_alone():
    assert changed(table_of(*longs(*WIDE), dataSkippingStatsColumns="a b"), "c99") == {}


# --- the whole way ----------------------------------------------------------------------------------------------------


def wide_rows(rows=1200):
    draw = np.random.default_rng(0)
    data = {f"c{number}": pa.array(draw.integers(0, 9, rows)) for number in range(40)}
    return pa.table(data | {"k": draw.permutation(rows), "j": draw.permutation(rows)})


def files_for(home, column):
    """Files that pyarrow opens for one value of a column, by delta-rs's statistics."""
    dataset = deltalake.DeltaTable(home.root).to_pyarrow_dataset()
    return len(list(dataset.get_fragments(filter=pc.field(column) == 5)))


@pytest.fixture
def wide(tmp_path):
    rows = wide_rows()
    return Delta(tmp_path).make([rows.slice(start, 300) for start in range(0, 1200, 300)])


CASES = {
    "number": ({}, {COUNT: "41"}),
    "list": ({LIST: "c3"}, {LIST: "c3,k"}),
    "far": ({COUNT: "2"}, {LIST: "c0,c1,k"}),
}


@pytest.mark.parametrize("case", CASES)
def test_other_readers_skip_by_a_key_that_the_properties_left_out(wide, case):
    before, after = CASES[case]
    if before:
        deltalake.DeltaTable(wide.root).alter.set_table_properties(before)
    done = wide.cluster(by=["k"], target_file_size=4000)
    assert {each.name: each.value for each in done.properties} == after
    table = deltalake.DeltaTable(wide.root)
    assert {name: table.metadata().configuration.get(name) for name in after} == after
    files = len(table.file_uris())
    assert files > 8
    assert files_for(wide, "k") == 1
    assert files_for(wide, "j") == files, "only keys are put in"
    assert zonal.explain(wide.name, where="k = 5").levels[0].kept == 1
    assert zonal.explain(wide.name, where="j = 5").levels[0].kept == files
    assert [depth.before for depth in done.lookups.depths] == [4.0], "before, every file was read"
    assert_same_rows(wide.rows(), wide_rows())
    again = wide.cluster(by=["k"], target_file_size=4000, full=True)
    assert again.properties == ()
    log = wide.root / "_delta_log" / f"{again.run.versions[-1]:020d}.json"
    assert "metaData" not in log.read_text(), "a second run finds the properties as they must be"


def test_properties_that_are_to_be_kept_are_kept_and_the_truth_is_told(wide):
    done = wide.cluster(by=["k"], target_file_size=4000, keep_properties=True)
    assert done.properties == ()
    table = deltalake.DeltaTable(wide.root)
    assert COUNT not in table.metadata().configuration
    files = len(table.file_uris())
    assert files_for(wide, "k") == files == zonal.explain(wide.name, where="k = 5").levels[0].kept
    reason = f"Readers don't use statistics of 'k': the table property {COUNT} is '32' and leaves it out."
    assert zonal.show(wide.name).problems == (reason,)
    assert reason in zonal.explain(wide.name, where="k = 5").notes


def test_a_plan_tells_the_properties_and_leaves_them(wide):
    assert [each.name for each in wide.plan(by=["k"]).properties] == [COUNT]
    assert wide.plan(by=["k"], keep_properties=True).properties == ()
    assert wide.plan(by=["c0"]).properties == ()
    assert COUNT not in deltalake.DeltaTable(wide.root).metadata().configuration


def test_a_copy_has_the_properties_that_its_keys_need(wide, tmp_path):
    done = wide.cluster(by=["k"], target_file_size=4000, into=f"delta:{tmp_path / 'copy'}")
    assert [(each.name, each.value) for each in done.properties] == [(COUNT, "41")]
    copied = deltalake.DeltaTable(tmp_path / "copy")
    assert copied.metadata().configuration[COUNT] == "41"
    fragments = copied.to_pyarrow_dataset().get_fragments(filter=pc.field("k") == 5)
    assert len(list(fragments)) == 1
    with pytest.raises(ZonalError, match="keep_properties"):
        wide.cluster(by=["k"], into=f"delta:{tmp_path / 'other'}", keep_properties=True)


def test_a_property_that_another_writer_changes_meanwhile_is_a_conflict(wide):
    table, rewrite = prepare(wide.root, layout=Layout("zorder", ("k",)))
    deltalake.DeltaTable(wide.root).alter.set_table_properties({COUNT: "35"})
    with pytest.raises(ConflictError, match="properties"):
        table.commit(rewrite)


def test_the_last_commit_of_a_run_sets_the_property(wide):
    done = wide.cluster(by=["k"], target_file_size=4000, commit_every=30_000)
    assert len(done.run.versions) > 2
    assert len(done.properties) == 1
    logs = [(wide.root / "_delta_log" / f"{version:020d}.json").read_text() for version in done.run.versions]
    assert [f'"{COUNT}"' in log for log in logs] == [*[False] * (len(logs) - 1), True]


def test_a_property_waits_until_all_files_have_the_statistics(wide):
    """deltalake's reader for pyarrow loses all rows of files without a bound that it uses."""

    def rows_above(column):
        dataset = deltalake.DeltaTable(wide.root).to_pyarrow_dataset()
        return dataset.to_table(filter=pc.field(column) >= 0).num_rows

    before = {column: rows_above(column) for column in ("k", "j", "c33")}
    part = wide.cluster(by=["k"], target_file_size=4000, max_bytes="50KB")
    assert 0 < part.change.removed_files < 4
    assert part.properties == ()
    assert f"The table property {COUNT} stays as it is until all files have statistics" in part.note
    assert {column: rows_above(column) for column in before} == before
    rest = wide.cluster(by=["k"], target_file_size=4000)
    assert [each.name for each in rest.properties] == [COUNT]
    assert not rest.note
    assert {column: rows_above(column) for column in before} == before
    assert files_for(wide, "k") < len(wide.files())


def test_a_snapshot_has_bounds_of_columns_that_readers_use_alone(tmp_path):
    log = LogWriter(tmp_path)
    told = stats(9, {"a": 1, "b": 1, "g": {"c": 1}}, {"a": 2, "b": 2, "g": {"c": 2}})
    fields = [*longs("part", "a", "b"), field("g", struct(*longs("c")))]
    for version, listed in enumerate(("a,g", "b", "")):
        head = metadata(*fields, partitioning=["part"], configuration={LIST: listed})
        log.commit(*([protocol(), add("f", stats=told, values={"part": "1"})] if version == 0 else []), head)
    found = [DeltaTable(str(log), version=version).snapshot().files for version in range(3)]
    assert [list(each.bounds) for each in found] == [["a", "g.c"], ["b"], []]
    assert [list(each.partition_bounds) for each in found] == [["part"]] * 3


def test_text_and_json_name_the_property(wide):
    from rich.console import Console

    from zonal.report.clustering import clustering_blocks, plan_blocks
    from zonal.report.machine.json_form import to_json
    from zonal.report.terminal.blocks import print_blocks

    console = Console(record=True, width=200)
    print_blocks(console, plan_blocks(wide.plan(by=["k"])))
    done = wide.cluster(by=["k"], runner=run_here)
    print_blocks(console, clustering_blocks(done))
    line = f"{COUNT} = 41 (wasn't set), so that readers use the statistics of all keys"
    assert console.export_text().count(line) == 2
    assert json.loads(to_json(done))["properties"] == [{"name": COUNT, "value": "41", "before": None}]
