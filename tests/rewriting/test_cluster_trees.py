"""Tables are clustered by the cuts of a tree, in place, appended to and copied."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster_tables import (
    FORMATS,
    IN_PLACE,
    NEWEST,
    Parquet,
    assert_same_rows,
    home,
    never,
    partitions_hold,
    parts_of,
    rows_in,
    telemetry,
)
from zonal.errors import LayoutError
from zonal.layouts.layout import Layout
from zonal.layouts.tree import tree_of
from zonal.learning import grow
from zonal.predicates.bound import Interval, Ranges
from zonal.trials.boxes import boxes_of, code


def learned(rows, **options):
    """A tree that is grown for ranges of `x` and for single devices."""
    bounds = [
        *(Ranges("x", (Interval(low, low + 99),)) for low in range(0, 1000, 100)),
        *(Ranges("s", (Interval(name, name),)) for name in (b"device-0007", b"device-0150")),
        Ranges("y", (Interval(1.5, None),)),
    ]
    coded = code(rows, ["x", "y", "s"])
    boxes = boxes_of(bounds, coded)
    tree = grow(coded, boxes, np.ones(len(bounds)), schema=rows.schema, leaf_rows=len(coded) / 15, group_rows=20)
    return replace(tree.layout(), **({"target_file_bytes": 3000} | options))


@pytest.mark.parametrize("partitioning", [(), ("p",)], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_table_is_clustered_by_a_tree_and_then_there_is_nothing_to_do(kind, partitioning, tmp_path):
    before = telemetry(3000)
    table = home(kind, tmp_path).make(parts_of(before, 4), partitioning)
    layout = learned(before)
    done = table.cluster(layout=layout)
    assert_same_rows(table.rows(), before)
    files = len(table.files())
    assert files >= 8
    assert done.lookups.depths[0].after < 0.5 * files, "the column that is cut first"
    if partitioning:
        partitions_hold(table, before)
    version = table.version()
    for again in ({"layout": layout}, {"layout": str(layout)}, {}):
        assert table.cluster(runner=never, **again).run.versions == ()
    assert table.version() == version


def ranges_of(table, column="x"):
    """Sorted bounds of the files in a column."""
    values = [rows_in(file, column) for file in table.files()]
    return sorted((min(each), max(each)) for each in values)


@pytest.mark.parametrize("kind", NEWEST)
def test_appended_rows_are_clustered_by_the_recorded_cuts(kind, tmp_path):
    before, more = telemetry(3000), telemetry(3000, 1, first=3000)
    table = home(kind, tmp_path).make(parts_of(before, 2))
    layout = learned(before)
    table.cluster(layout=layout)
    old = {file.path for file in table.files()}
    table.append(more)
    done = table.cluster()
    assert Layout.parse(done.layout) == layout
    assert (done.change.removed_files, done.change.rows) == (1, 3000)
    assert_same_rows(table.rows(), pa.concat_tables([before, more]))
    root = tree_of(layout)
    cut = root.columns[int(root.column[0])], root.points[int(root.column[0])][int(root.cut[0])]
    assert isinstance(cut[1], int | float)
    sides = [{value >= cut[1] for value in rows_in(file, cut[0])} for file in table.files() if file.path not in old]
    assert len(sides) > 8
    assert all(len(side) == 1 for side in sides), "no new file crosses the first cut"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_copy_is_clustered_by_a_tree(kind, tmp_path):
    before = telemetry(2000)
    source = Parquet(tmp_path / "from").make(parts_of(before, 3))
    into = home("iceberg v2" if kind == "iceberg" else kind, tmp_path / "into", "copy")
    layout = learned(before)
    done = source.cluster(layout=layout, into=into.name, **into.options)
    assert_same_rows(into.rows(), before)
    assert (done.change.rows, Layout.parse(done.layout)) == (2000, layout)
    assert len(into.files()) >= 6


def test_files_of_a_tree_dont_claim_to_be_sorted(tmp_path):
    before = telemetry(1000)
    table = home("delta", tmp_path).make(parts_of(before, 2))
    table.cluster(layout=learned(before))
    for file in table.files():
        assert not file.footer.row_group(0).sorting_columns
    iceberg = home("iceberg v2", tmp_path / "ice").make(parts_of(before, 2))
    iceberg.cluster(layout=learned(before))
    assert not iceberg.table.sort_order().fields


def test_row_groups_end_at_the_cuts_of_a_tree(tmp_path):
    before = telemetry(4000)
    table = home("delta", tmp_path).make(parts_of(before, 2))
    layout = learned(before, target_file_bytes=40_000, row_group_rows=60)
    table.cluster(layout=layout)
    tree = tree_of(layout)
    for file in table.files():
        stored = pq.ParquetFile(file.path)
        groups = [tree.paths(stored.read_row_group(number)) for number in range(stored.num_row_groups)]
        assert len(groups) > 3
        inside = [first[-1] == second[0] for first, second in pairwise(groups)]
        assert np.mean(inside) < 0.5, "most row groups end where a leaf does"


def test_cuts_that_dont_fit_the_table_are_refused(tmp_path):
    before = telemetry(200)
    table = home("delta", tmp_path).make([before])
    layout = learned(before)
    with pytest.raises(LayoutError, match=r"The tree cuts column '.' at"):
        table.cluster(layout=replace(layout, columns=("s", "x", "y")[: len(layout.columns)]))
    with pytest.raises(LayoutError, match="can't be read"):
        table.cluster(layout=replace(layout, tree='{"leaves":3}'))
    with pytest.raises(LayoutError, match="learned from queries"):
        table.cluster(layout="tree", by=["x"])
