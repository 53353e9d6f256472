"""Columns that wait in the key of rows that are appended, as they would in a merge of them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.appends import append_to
from support.cluster_tables import NEWEST, home
from support.growing_table import ROW_BYTES, GrowingTable
from zonal.layouts.layout import Layout
from zonal.upkeep.append_delays import arriving_delays

COLUMNS = ("ts", "x")


def clustered(rows=16_000):
    draw = np.random.default_rng(0)
    layout = Layout("zorder", COLUMNS, target_file_bytes=500 * ROW_BYTES)
    table = GrowingTable({"ts": np.arange(rows), "x": draw.integers(0, 1000, rows)}, layout)
    table.append(np.arange(rows))
    table.keep()
    return table


def delays(ts, x, table=None):
    arriving = [pa.chunked_array([pa.array(values, pa.int64())]) for values in (ts, x)]
    return arriving_delays((table or clustered()).snapshot(), COLUMNS, arriving, len(ts))


def test_times_that_nobody_has_seen_wait_by_their_share_of_the_table():
    x = np.random.default_rng(1).integers(0, 1000, 1_000)
    assert delays(np.arange(20_000, 21_000), x) == (4, 0), "a sixteenth of the rows"
    assert delays(np.arange(15_000, 16_000), x)[0] in (3, 4), "among times that are there, too"


def test_rows_like_those_of_the_table_wait_for_nothing():
    draw = np.random.default_rng(2)
    assert delays(draw.integers(0, 16_000, 1_000), draw.integers(0, 1000, 1_000)) == ()


def test_a_few_late_rows_do_not_make_a_batch_wide():
    draw = np.random.default_rng(3)
    ts = np.arange(20_000, 21_000)
    ts[:30] = draw.integers(0, 16_000, 30)
    assert delays(ts, draw.integers(0, 1000, 1_000)) == (4, 0)


def test_without_values_or_files_nothing_waits():
    none = [None] * 10
    assert delays(none, none) == ()
    empty = GrowingTable({"ts": np.arange(1), "x": np.arange(1)}, Layout("zorder", COLUMNS))
    assert delays([1], [1], empty) == ()


@pytest.mark.parametrize("kind", NEWEST)
def test_appended_rows_of_newer_times_are_told_apart_by_the_other_column(kind, tmp_path):
    draw = np.random.default_rng(4)

    def rows(first, count):
        columns = {"ts": first + np.arange(count), "x": draw.integers(0, 5000, count)}
        return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})

    table = home(kind, tmp_path).make([rows(0, 40_000)])
    table.cluster(layout="zorder(ts, x, file_size=3KB)")
    old = {file.path for file in table.files()}
    append_to(table, rows(40_000, 4_000))
    new = [pq.read_table(file.path) for file in table.files() if file.path not in old]
    assert len(new) >= 3
    widths = {name: np.mean([np.ptp(part[name].to_numpy()) for part in new]) for name in COLUMNS}
    assert widths["x"] < 0.5 * 5000, "look-ups of x skip files of the batch"
    assert widths["ts"] > 0.5 * 4000
