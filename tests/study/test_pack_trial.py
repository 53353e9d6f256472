"""How rows are stored inside of row groups: chosen by trial, told in advance, and without effect on what is skipped."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster_tables import Delta, Iceberg, assert_same_rows, parts_of
from zonal.errors import LayoutError
from zonal.layouts.keys import key_words
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.plan.pack import DICTIONARY, Packing
from zonal.plan.rewrite import Writing
from zonal.storage import Storage
from zonal.study.pack_trial import TrialRows, pack
from zonal.worker.write.writer import sort_piece

DELTAS = {"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}


def events(rows, seed=0):
    """Rows as they arrive: by time, with ids, few-valued texts, long texts, nulls and a nested column."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(rows) + seed * rows
    words = np.array(["ok", "warning", "failed", "unknown"])
    return pa.table(
        {
            "ts": pa.array(1_700_000_000_000_000 + numbers * 1_000_003).cast(pa.timestamp("us", "UTC")),
            "id": pa.array(rng.permutation(rows) + seed * rows),
            "state": pa.array(words[rng.integers(0, 4, rows)]),
            "place": pa.array([f"city-{number:03d}" for number in rng.zipf(1.4, rows) % 200]),
            "text": pa.array([f"request {number} of the day" for number in rng.integers(0, 10**7, rows)]),
            "value": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "flag": pa.array(rng.random(rows) < 0.05),
            "nested": pa.array([{"x": int(number)} for number in rng.integers(0, 9, rows)]),
        }
    )


def packed(rows, layout, *, total=None, keep_order=False, few=("state", "place"), encodings="modern"):
    words = key_words(rows, layout, Ranks.fit(rows, layout.curve_columns))
    writing = Writing("", Storage("/", {}), rows.schema, encodings=encodings)
    return pack(TrialRows(rows, words, total or rows.num_rows, few), writing, layout, keep_order=keep_order)


ROWS = events(20_000)
ZORDER = Layout("zorder", ("ts", "id"))


def test_encodings_are_chosen_by_trial():
    found = packed(ROWS, ZORDER).packing.encodings
    assert found["ts"] == "DELTA_BINARY_PACKED"
    assert found["text"] in DELTAS
    assert found["state"] == found["place"] == DICTIONARY
    assert "nested" not in found, "nested columns are left as they are"


def test_plain_encodings_are_those_of_old_readers():
    found = packed(ROWS, ZORDER, encodings="plain").packing.encodings
    assert set(found.values()) <= {DICTIONARY, "PLAIN"}
    assert found["ts"] == "PLAIN"


def test_rows_that_are_smallest_by_few_valued_columns_are_sorted_by_them():
    rng = np.random.default_rng(1)
    route = rng.integers(0, 30, 60_000)
    rows = pa.table(
        {
            "ts": pa.array(np.arange(60_000)),
            "route": pa.array(route),
            "code": pa.array([f"code {number}" for number in route % 7]),
            "length": pa.array(route * 13.5),
        }
    )
    order = packed(rows, Layout("zorder", ("ts", "route")), few=("code",)).packing.order
    assert order
    assert order[0] != "ts"
    assert {"route", "length"} & set(order[:3])


def test_linear_layouts_and_rows_with_ids_stay_in_their_order():
    assert packed(ROWS, Layout("linear", ("ts", "id"))).packing.order == ()
    assert packed(ROWS, ZORDER, keep_order=True).packing.order == ()


def test_nested_columns_alone_are_written_as_they_are():
    rows = ROWS.select(["nested"])
    found = packed(rows, Layout("zorder", ("nested.x",)), few=())
    assert found.packing == Packing()
    assert 0 < found.row_bytes < 8


def test_columns_may_have_other_names_in_files():
    words = key_words(ROWS, ZORDER, Ranks.fit(ROWS, ZORDER.columns))
    named = pa.schema([field.with_name(f"col-{at}") for at, field in enumerate(ROWS.schema)])
    writing = Writing("", Storage("/", {}), named, encodings="modern")
    found = pack(TrialRows(ROWS, words, ROWS.num_rows, ["state"]), writing, ZORDER, keep_order=False).packing
    assert set(found.encodings) == {f"col-{at}" for at in range(7)}
    assert set(found.order) <= set(ROWS.schema.names)


def test_no_rows_are_no_trial():
    assert packed(ROWS.slice(0, 0), ZORDER, few=()).packing == Packing()


@pytest.mark.parametrize("kind", ["zorder", "hilbert"])
def test_row_groups_hold_the_same_rows_in_any_inner_order(kind):
    layout = Layout(kind, ("ts", "id"), row_group_rows=3000)
    words = key_words(ROWS, layout, Ranks.fit(ROWS, layout.columns))
    plain = sort_piece(words, ROWS, layout)
    inside = sort_piece(words, ROWS, layout, Packing(("flag", "ts")))
    assert plain.starts == inside.starts
    assert len(plain.starts) > 4
    assert not plain.data.equals(inside.data)
    for one, other in zip(plain, inside, strict=True):
        assert sorted(one["id"].to_pylist()) == sorted(other["id"].to_pylist())
        assert other["flag"].to_pylist() == sorted(other["flag"].to_pylist())


@pytest.mark.parametrize("size", [60_000, 400_000])
@pytest.mark.parametrize("make", [Delta, Iceberg])
def test_bytes_are_told_in_advance(make, size, tmp_path):
    table = make(tmp_path).make([events(20_000, seed) for seed in range(5)])
    before = table.rows()
    plan = table.plan(by=["ts", "id"], target_file_size=size)
    done = table.cluster(by=["ts", "id"], target_file_size=size)
    assert_same_rows(table.rows(), before)
    assert done.change.added_bytes == pytest.approx(done.change.predicted_bytes, rel=0.1)
    assert plan.change.new_bytes == pytest.approx(done.change.added_bytes, rel=0.1)


def encodings_of(table):
    groups = [pq.read_metadata(file.path).row_group(0) for file in table.files()]
    return {each for group in groups for at in range(group.num_columns) for each in group.column(at).encodings}


def test_delta_tables_are_smaller_by_newer_encodings_and_iceberg_tables_have_old_ones(tmp_path):
    parts = parts_of(ROWS, 4)
    delta, iceberg = Delta(tmp_path, "d").make(parts), Iceberg(tmp_path, "i").make(parts)
    smaller = delta.cluster(by=["ts", "id"], compression="zstd").change
    plain = iceberg.cluster(by=["ts", "id"]).change
    assert encodings_of(delta) & DELTAS
    assert not encodings_of(iceberg) & DELTAS
    assert smaller.added_bytes < 0.85 * plain.added_bytes


@pytest.mark.parametrize("make", [Delta, Iceberg])
def test_encodings_that_were_asked_for_are_recorded_and_stay(make, tmp_path):
    table = make(tmp_path).make(parts_of(ROWS, 4))
    asked = {Delta: "plain", Iceberg: "modern"}[make]
    first = table.cluster(by=["ts", "id"], encodings=asked)
    found = encodings_of(table)
    again = table.cluster(full=True)
    other = table.cluster(by=["id"], full=True)
    assert bool(found & DELTAS) == bool(encodings_of(table) & DELTAS) == (asked == "modern")
    assert f"encodings={asked}" in first.layout
    assert f"encodings={asked}" in other.layout
    assert again.layout == first.layout
    assert_same_rows(table.rows(), ROWS)


def test_other_encodings_make_no_other_layout():
    plain = Layout.parse("zorder(ts, id, encodings=plain)")
    assert plain == ZORDER
    assert plain.id == ZORDER.id
    assert plain.encodings == "plain"
    assert str(plain) == "zorder(ts, id, encodings=plain)"
    assert Layout.from_json(plain.to_json()).encodings == "plain"


def test_unknown_encodings_are_refused_with_the_nearest_name():
    with pytest.raises(LayoutError, match=r"Unknown encodings 'modren'\. Did you mean 'modern'"):
        Layout.parse("zorder(ts, encodings=modren)")
