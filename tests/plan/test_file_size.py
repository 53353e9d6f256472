"""The size of new files: bounded, steady while a table grows, and what somebody asked for comes first."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.layouts.layout import Layout
from zonal.plan.file_size import LEAST, MOST, FileSize, file_size, size_reason, sized, suited
from zonal.snapshot import UNKNOWN, Files, SizeProperty, Snapshot, Traits
from zonal.tables.delta.traits import traits_of as delta_traits
from zonal.tables.iceberg.traits import traits_of as iceberg_traits

LAYOUT = Layout("zorder", ("x", "y"))
BYTES = st.integers(0, 10**16)
MIB, GIB = 1024**2, 1024**3


def table_of(size, layout=None, named=None):
    """A table of one file with so many bytes."""
    one = np.ones(1, np.int64)
    files = Files(
        pa.array(["/t/a"]), one * size, one, one * 0, one * 0, one * UNKNOWN, pa.array([None], pa.string()), one * 0,
        ("",), {},
    )  # fmt: skip
    schema = pa.schema({"x": pa.int64(), "y": pa.int64()})
    traits = Traits(file_size=named)
    return Snapshot("t", "delta", "/t", 0, None, schema, (), files, {}, layout=layout, traits=traits)


@given(BYTES, BYTES)
def test_larger_tables_have_larger_files_within_bounds(one, other):
    assert LEAST <= suited(one) <= MOST
    assert suited(one).bit_count() == 1
    assert suited(min(one, other)) <= suited(max(one, other))


@pytest.mark.parametrize(
    ("table", "size"),
    [(0, MIB), (64 * MIB, MIB), (GIB, 4 * MIB), (64 * GIB, 32 * MIB), (1024 * GIB, 128 * MIB), (10**15, GIB)],
)
def test_small_tables_have_something_to_skip_and_large_ones_no_million_files(table, size):
    assert suited(table) == size
    assert table < 64 * MIB or 64 <= table / size < 1_000_000


@given(st.integers(1, 10**15), st.floats(0.25, 4))
def test_a_size_stays_while_a_table_grows_or_shrinks_four_times(size, factor):
    recorded = sized(LAYOUT, table_of(size))
    now = table_of(round(size * factor), recorded)
    assert sized(LAYOUT, now).fitted_file_bytes == recorded.fitted_file_bytes
    afresh = sized(LAYOUT, now, afresh=True)
    assert afresh.fitted_file_bytes == suited(round(size * factor)), "a full rewrite takes what suits best"


def test_a_table_that_grows_a_thousand_times_in_small_steps_changes_its_size_few_times():
    layout, sizes = LAYOUT, []
    for size in np.geomspace(GIB, 1024 * GIB, 500).astype(int).tolist():
        layout = sized(LAYOUT, table_of(size, layout))
        assert layout.id == LAYOUT.id, "files of every size are in the one layout"
        assert 1 / 2 <= suited(size) / layout.file_bytes <= 2
        sizes.append(layout.file_bytes)
    assert len({*sizes}) <= 4
    assert sizes == sorted(sizes)


def test_what_was_asked_for_comes_first_then_the_layout_then_the_property():
    named = SizeProperty("size", 9 * MIB)
    recorded = Layout("hilbert", ("y",), target_file_bytes=7 * MIB)
    asked = replace(LAYOUT, target_file_bytes=5 * MIB)
    for layout, known, expected, reason in (
        (asked, recorded, 5 * MIB, "as requested"),
        (LAYOUT, recorded, 7 * MIB, "as the table's layout has it"),
        (LAYOUT, LAYOUT, 9 * MIB, "as the table property size has it"),
        (LAYOUT, None, 9 * MIB, "as the table property size has it"),
    ):
        table = table_of(GIB, known, named)
        chosen = sized(layout, table)
        assert (chosen.file_bytes, chosen.columns) == (expected, layout.columns)
        assert size_reason(chosen, table) == reason
    assert file_size(table_of(GIB, recorded)) == FileSize(7 * MIB, asked=True)
    assert file_size(table_of(0), arriving=GIB) == FileSize(4 * MIB, asked=False)


def test_the_reason_names_the_tables_size():
    table = table_of(GIB)
    assert size_reason(sized(LAYOUT, table), table) == "which suits a table of 1.1 GB"
    grown = table_of(4 * GIB, sized(LAYOUT, table))
    told = size_reason(sized(LAYOUT, grown), grown)
    assert told == "as recorded for the table; 8MiB would suit its 4.3 GB little better"
    unread = table_of(GIB, named=SizeProperty("size", None))
    assert size_reason(sized(LAYOUT, unread), unread).endswith("; the table property size is no size")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", MIB),
        ("100mb", 100 * MIB),
        (" 2 G ", 2 * GIB),
        ("64k", 65536),
        ("0", None),
        ("x", None),
        ("-1", None),
    ],
)
def test_deltas_property_is_read_as_spark_reads_it(text, size):
    assert delta_traits("/t", {"delta.targetFileSize": text}).file_size == SizeProperty("delta.targetFileSize", size)
    assert delta_traits("/t", {}).file_size is None


@pytest.mark.parametrize(("text", "size"), [("1048576", MIB), ("0", None), ("100mb", None)])
def test_icebergs_property_is_a_number_of_bytes(text, size):
    traits = iceberg_traits("t", pa.schema([]), {"write.target-file-size-bytes": text})
    assert traits.file_size == SizeProperty("write.target-file-size-bytes", size)
    assert iceberg_traits("t", pa.schema([]), {}).file_size is None
