"""Laws of a rewrite's parts: where rows are placed, how files are dealt out, what travels, and what files say."""

import io
import json
import math
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.arrow_values import KINDS, VALUES, arrays, build, order_key
from zonal.errors import ZonalError
from zonal.layouts.layout import Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.tree import Tree
from zonal.parquet.footer import read_footer
from zonal.parquet.page_index import page_bounds
from zonal.plan.choice import choose, in_commits, still_there
from zonal.plan.placement import Sizes, has_heavy_keys, plan_placement
from zonal.plan.rewrite import ColumnMetrics, EqualityDelete, ReadTally, Source, Vector, Writing, Written
from zonal.snapshot import Files, Physical, Snapshot
from zonal.storage import Storage
from zonal.values.sample import Sample
from zonal.worker.exchange.dictionary import few_valued, with_numbers
from zonal.worker.exchange.payload import Form, decode, encode
from zonal.worker.exchange.results import read_results, tallies, tally_bytes, written
from zonal.worker.splits import Share, plan_splits, read_split, row_groups_of, split_text
from zonal.worker.write.leaves import odd_leaves
from zonal.worker.write.metrics import FileMetrics
from zonal.worker.write.writer import FileWriter, sort_piece

LAYOUTS = ["zorder", "hilbert", "linear", "tree"]


def layout_of(kind, columns, **options):
    """A layout of any kind; the tree has a cut or two in each column of `numbers`."""
    if kind != "tree":
        return Layout(kind, columns, **options)
    families, points = ("int", "float")[: len(columns)], ((2, 5000), (0.0,))[: len(columns)]
    nodes = (
        [(0, 1), (-1, -1), (-1, -1)]
        if len(columns) == 1
        else [(0, 1), (1, 0), *[(-1, -1)] * 2, (0, 0), *[(-1, -1)] * 2]
    )
    column, cut = np.array(nodes).T
    return replace(Tree(columns, families, points, column, cut).layout(), **options)


def numbers(rows, seed=0, distinct=10_000):
    draw = np.random.default_rng(seed)
    return pa.table({"x": draw.integers(0, distinct, rows), "y": draw.normal(size=rows), "id": np.arange(rows)})


def planned(layout, sample, sizes):
    """Plan as `zonal.study.sample.plan` does."""
    ranks = Ranks.fit(sample.data, layout.curve_columns)
    heavy = has_heavy_keys(layout, ranks, sample, sizes)
    return plan_placement(layout, ranks, sample, sizes, ties=heavy)


# --- placing ---------------------------------------------------------------------------------------------------------


@st.composite
def plans(draw):
    """A layout, and rows in some partitions; the sample is a part of them."""
    rows = draw(st.integers(1, 400))
    data = numbers(rows, draw(st.integers(0, 99)), draw(st.sampled_from([1, 3, 10_000])))
    partition = np.random.default_rng(rows).integers(0, draw(st.integers(1, 4)), rows)
    size = draw(st.sampled_from([1, 500, 5000, 10**9]))
    layout = layout_of(draw(st.sampled_from(LAYOUTS)), ("x", "y"), target_file_bytes=size)
    sampled = np.flatnonzero(np.random.default_rng(0).random(rows) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    sizes = Sizes({part: int(count) for part, count in Counter(partition.tolist()).items()}, 50.0, 24.0)
    return data, partition, planned(layout, Sample(data.take(sampled), partition[sampled]), sizes)


@given(plans())
def test_every_row_belongs_to_one_piece_of_its_partition_and_pieces_follow_the_keys(plan):
    data, partition, placement = plan
    for part in set(partition.tolist()):
        rows = np.flatnonzero(partition == part)
        words, pieces = placement.place(data.take(rows), part, rows, seed=7)
        assert len(words) == placement.key_count
        assert set(placement.partition_of_file[placement.file_of_piece[pieces]].tolist()) == {part}
        order = np.lexsort([pieces, *reversed(words)])
        assert (np.diff(pieces[order]) >= 0).all(), "a larger key never has a smaller piece"


@given(plans())
def test_pieces_of_a_file_and_files_of_a_task_lie_side_by_side(plan):
    _, _, placement = plan
    for numbers_of in (placement.file_of_piece, placement.task_of_file):
        assert set(np.diff(numbers_of).tolist()) <= {0, 1}
        assert numbers_of[0] == 0
    assert placement.file_of_piece[-1] + 1 == placement.files
    assert placement.tasks == placement.task_of_file[-1] + 1
    assert (np.diff(placement.partition_of_file) >= 0).all()


@given(plans(), st.integers(0, 2**40))
def test_a_row_has_the_same_place_in_every_attempt_and_batch(plan, seed):
    data, partition, placement = plan
    part = int(partition[0])
    rows = np.flatnonzero(partition == part)
    whole = placement.place(data.take(rows), part, rows, seed)[1]
    half = len(rows) // 2
    halves = [placement.place(data.take(some), part, some, seed)[1] for some in (rows[:half], rows[half:]) if len(some)]
    assert np.concatenate(halves).tolist() == whole.tolist()


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_files_have_about_equal_shares_also_of_a_heavy_value(kind, share):
    data = numbers(20_000)
    x = np.where(np.arange(20_000) % 10 < 10 * share, 7, data["x"].to_numpy())
    data = data.set_column(0, "x", pa.array(x))
    layout = layout_of(kind, ("x",), target_file_bytes=1000 * 50)
    sample = Sample(data.take(np.arange(0, 20_000, 3)), np.zeros(6667, np.int64))
    placement = planned(layout, sample, Sizes({0: 20_000}, 50.0, 24.0))
    _, pieces = placement.place(data, 0, np.arange(20_000), seed=3)
    counts = np.bincount(placement.file_of_piece[pieces], minlength=placement.files)
    assert 15 <= placement.files <= 25
    assert counts.max() < 2.1 * 1000
    assert counts.min() > 0.3 * 1000
    assert placement.file_rows.sum() == pytest.approx(20_000, abs=placement.files)


def test_large_files_are_cut_into_pieces_that_fit_into_memory():
    data = numbers(4000)
    sizes = Sizes({0: 4_000_000}, row_bytes=100.0, row_memory=1000.0)  # 4 GB in memory
    layout = Layout("zorder", ("x", "y"), target_file_bytes=10**9)
    placement = planned(layout, Sample(data, np.zeros(4000, np.int64)), sizes)
    assert placement.files == 1
    counts = np.bincount(placement.place(data, 0, np.arange(4000), 0)[1])
    assert counts.max() * 1000 * 1000 < 2 * 64 * 1024**2


@pytest.mark.parametrize("files", [3, 100, 1000])
@pytest.mark.parametrize("total", [10_000, 100 * 1024**2])
def test_tasks_hold_files_up_to_the_target_size_and_tiny_tables_have_few(total, files):
    sample = Sample(numbers(1000), np.zeros(1000, np.int64))
    layout = Layout("zorder", ("x", "y"), target_file_bytes=total // files)
    placement = planned(layout, sample, Sizes({0: 100_000}, total / 100_000, 24.0))
    sizes = np.bincount(placement.task_of_file, placement.file_rows * total / 100_000)
    largest = max(min(total // files, total / 16), 1024**2)
    alone = np.bincount(placement.task_of_file) == 1
    assert (alone | (sizes <= largest)).all()
    assert (sizes[:-1] + sizes[1:] > largest).all(), "neighbors don't fit into one task"
    assert placement.tasks <= 2 * total / largest + 1


# --- splits ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-100, 100), max_size=30), st.integers(1, 12))
def test_every_row_group_is_in_exactly_one_part_of_a_file_and_parts_are_ranges(sizes, parts):
    found = [row_groups_of(sizes, part, parts) for part in range(parts)]
    assert [group for part in found for group in part] == list(range(len(sizes)))


@given(st.lists(st.integers(0, 200 * 1024**2), max_size=20), st.integers(1, 5000))
def test_splits_deal_out_every_part_of_every_file_once_and_in_order(sizes, new_files):
    sources = [Source(number, f"{number}", size, 10, 0) for number, size in enumerate(sizes)]
    splits = plan_splits(sources, new_files)
    shares = [share for split in splits for share in split]
    assert [(share.source.number, share.part) for share in shares] == [
        (source.number, part)
        for source in sources
        for part in range(next(s.parts for s in shares if s.source is source))
    ]
    assert all(splits)
    target = max(16 * 1024**2, new_files * 64 * 1024)
    for split in splits:
        size = sum(share.source.size // share.parts for share in split)
        assert size <= target or len(split) == 1
        assert size <= 1.5 * target + 1


ODD = st.text(max_size=12)
SOURCES = st.builds(
    Source,
    number=st.integers(0, 2**40),
    path=ODD,
    size=st.integers(0, 2**50),
    rows=st.integers(-1, 2**40),
    partition=st.integers(0, 2**31),
    vector=st.one_of(
        st.none(),
        st.builds(Vector, st.integers(0, 9), st.one_of(st.none(), ODD), st.integers(0, 9), st.integers(0, 9),
                  st.one_of(st.none(), st.binary(max_size=9))),
    ),
    position_deletes=st.lists(ODD, max_size=3).map(tuple),
    equality_deletes=st.lists(
        st.builds(EqualityDelete, ODD, st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)), max_size=2
    ).map(tuple),
    first_row_id=st.one_of(st.none(), st.integers(0, 2**60)),
    row_version=st.one_of(st.none(), st.integers(0, 2**60)),
)  # fmt: skip


@given(st.lists(st.tuples(SOURCES, st.integers(0, 5), st.integers(1, 6)), min_size=1, max_size=3))
def test_a_split_is_read_as_it_was_written(shares):
    split = tuple(Share(*share) for share in shares)
    assert read_split(split_text(split)) == split


@given(st.data())
def test_constants_travel_with_a_split_in_every_type(data):
    kind = data.draw(KINDS)
    value = build([data.draw(st.one_of(st.none(), VALUES[kind]))], kind)[0]
    source = Source(0, "a", 1, 1, 0, constants={"odd \n name": value})
    (found,) = read_split(split_text((Share(source),)))
    (read,) = found.source.constants.values()
    assert read.type == kind
    assert repr(read.as_py()) == repr(value.as_py())
    assert replace(found.source, constants={}) == replace(source, constants={})


# --- payloads --------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_payloads_hold_every_row_once_in_its_piece_in_key_order(data):
    kind = data.draw(KINDS.filter(lambda kind: not pa.types.is_dictionary(kind)))  # files have none, so readers neither
    column = data.draw(arrays(kind, max_size=20).filter(len))
    rows = len(column)
    table = pa.table({"v": column, "id": pa.array(range(rows)), "in": pa.array([[n] for n in range(rows)])})
    pieces = np.array(data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), np.int32)
    words = [
        np.array(data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=rows, max_size=rows)), np.uint64)
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    numbered = (pa.types.is_string(kind) or pa.types.is_binary(kind)) and data.draw(st.booleans())
    form = Form(table.schema, len(words), ("v",) if numbered else ())
    batch = encode(with_numbers(table, form.few_valued), words, pieces, np.array([5, 5, 6, 7]), form)
    assert [[5, 5, 6, 7][piece] for piece in batch["piece"].to_pylist()] == batch["task"].to_pylist()
    seen = []
    values = column.to_pylist()
    for piece in sorted(set(pieces.tolist())):
        mine = batch.filter(pc.equal(batch["piece"], piece))
        keys, found = decode([value.as_buffer() for value in mine["payload"]], form)
        assert pa.types.is_dictionary(found.schema.field("v").type) == numbered
        found = found.cast(table.schema)
        ids = found["id"].to_pylist()
        assert sum(mine["rows"].to_pylist()) == len(ids)
        has_nan = any(values[n] is not None and values[n] != values[n] for n in ids)
        assert mine["nans"].to_pylist() == [[0] if has_nan else []] * len(mine), "the first leaf holds a NaN"
        has_zero = any(isinstance(values[n], float) and repr(values[n]) == "-0.0" for n in ids)
        assert mine["zeros"].to_pylist() == [[0] if has_zero else []] * len(mine), "the first leaf holds a -0.0"
        assert [pieces[n] for n in ids] == [piece] * len(ids)
        assert [key.tolist() for key in keys] == [[int(word[n]) for n in ids] for word in words]
        together = list(zip(*(key.tolist() for key in keys), ids, strict=True))
        assert together == sorted(together), "rows of one key keep their order"
        assert [repr(value) for value in found["v"].to_pylist()] == [repr(values[n]) for n in ids]
        seen += ids
    assert sorted(seen) == list(range(rows))


def test_values_of_several_payloads_are_joined_and_columns_of_many_values_carry_themselves():
    table = pa.table({"few": ["a", "b", None] * 40, "many": [f"text {n}" for n in range(120)], "n": range(120)})
    assert few_valued(table) == ("few",)
    form = Form(table.schema, 1, ("few",))
    halves = [table.slice(0, 60), table.slice(60).set_column(0, "few", pa.array(["c", "a", None] * 20))]
    place = [np.arange(60, dtype=np.uint64)], np.zeros(60, np.int32), np.zeros(1, np.int64)
    payloads = [encode(with_numbers(half, form.few_valued), *place, form)["payload"][0] for half in halves]
    _, found = decode([payload.as_buffer() for payload in payloads], form)
    assert found.cast(table.schema).equals(pa.concat_tables(halves))


def test_a_file_of_dictionaries_is_one_of_their_values_with_statistics(tmp_path):
    values = pa.array(["m", "b", None, "m", "x"])
    plain = pa.table({"v": values, "id": range(5)})
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 2, None, 1, 3]), pa.array(["a", "m", "b", "x", "z"]))
    layout = Layout("zorder", ("id",))
    (told,) = write_file(pa.table({"v": unused, "id": range(5)}), layout, tmp_path, schema=plain.schema)
    assert (told.columns[0].lower.as_py(), told.columns[0].upper.as_py(), told.columns[0].nulls) == ("b", "x", 1)
    assert pq.read_table(told.path).equals(plain)
    stored = pq.read_metadata(told.path).row_group(0).column(0).statistics
    assert (stored.min, stored.max, stored.null_count) == ("b", "x", 1)


def test_pages_of_dictionaries_have_the_bounds_of_their_rows(tmp_path):
    rows = 90_000
    numbers = np.sort(np.random.default_rng(0).integers(0, 2000, rows)).astype(np.int32)
    column = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array([f"value {n:04}" for n in range(2000)]))
    table = pa.table({"v": column, "id": range(rows)})
    plain = table.cast(pa.schema([("v", pa.string()), ("id", pa.int64())]))
    (told,) = write_file(table, Layout("zorder", ("id",), row_group_rows=rows), tmp_path, schema=plain.schema)
    with pa.OSFile(told.path) as file:
        pages = page_bounds(file, read_footer(file), 0, Physical("v"), pa.string())
    starts = pages.first_rows.tolist()
    assert len(starts) > 3
    for page, (start, end) in enumerate(zip(starts, [*starts[1:], rows], strict=True)):
        found = pc.min_max(plain["v"].slice(start, end - start))
        bounds = pages.bounds.lower[page].as_py().decode(), pages.bounds.upper[page].as_py().decode()
        assert bounds == (found["min"].as_py(), found["max"].as_py())


# --- files -----------------------------------------------------------------------------------------------------------


def write_file(table, layout, folder, partition=0, schema=None, **options):
    writing = Writing(f"{folder}/run", Storage(str(folder), {}), schema or table.schema, **options)
    writer = FileWriter(writing, layout, partition, table.num_rows, odd_leaves(table))
    writer.write(sort_piece([np.arange(table.num_rows, dtype=np.uint64)], table, layout))
    writer.close()
    return writer.done


@settings(max_examples=60)
@given(st.data())
def test_what_is_told_of_a_file_is_what_it_holds(data):
    kind = data.draw(KINDS)
    column = data.draw(arrays(kind, max_size=25).filter(len))
    table = pa.table({"v": column.combine_chunks(), "id": pa.array(range(len(column)))})
    layout = Layout("zorder", ("id",), row_group_rows=data.draw(st.sampled_from([3, 100])))
    with tempfile.TemporaryDirectory() as folder:
        (told,) = write_file(table, layout, folder)
        assert told.size == Path(told.path).stat().st_size
        found = pq.read_table(told.path)
    (metrics, _) = told.columns
    values = column.to_pylist()
    undefined = [value for value in values if isinstance(value, float) and math.isnan(value)]
    known = [value for value in values if value is not None and value not in undefined]
    known = [value for value in known if not (isinstance(value, float) and math.isnan(value))]
    assert (told.rows, metrics.path, metrics.values) == (len(values), "v", len(values))
    assert (metrics.nulls, metrics.nans) == (values.count(None), len(undefined))
    assert found.num_rows == len(values)
    if metrics.lower is not None:
        lower, upper = order_key(metrics.lower.as_py()), order_key(metrics.upper.as_py())
        assert lower == min(map(order_key, known))
        assert upper == max(map(order_key, known))
    else:
        assert not known or not has_order(kind)


def has_order(kind):
    try:
        pc.min_max(pa.nulls(0, kind))
    except pa.ArrowNotImplementedError:
        return False
    return True


def test_a_file_that_grows_too_large_is_closed_and_another_begun(tmp_path):
    random = np.random.default_rng(0)
    table = pa.table({"x": random.integers(0, 2**62, 20_000)})
    layout = Layout("zorder", ("x",), target_file_bytes=40_000, row_group_rows=1000)
    told = write_file(table, layout, tmp_path)
    assert len(told) == 3
    assert [file.rows for file in told] == [pq.read_metadata(file.path).num_rows for file in told]
    assert sum(file.rows for file in told) == 20_000
    found = pa.concat_tables([pq.read_table(file.path) for file in told])
    assert found.equals(table)
    assert all(0.5 * 40_000 < file.size < 1.8 * 40_000 for file in told)


def test_bounds_of_zero_hold_for_both_zeros_and_struct_leaves_have_bounds_list_elements_not():
    table = pa.table(
        {
            "f": pa.array([0.0, -0.0, math.nan, None]),
            "s": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 3, "b": None}]),
            "l": pa.array([[1], [], None, [2, None]]),
        }
    )
    sink = io.BytesIO()
    footers = []
    with pq.ParquetWriter(sink, table.schema, metadata_collector=footers) as writer:
        writer.write_table(table)
    metrics = FileMetrics(table.schema)
    metrics.add(table)
    f, a, b, element = metrics.columns(footers[0])
    assert (math.copysign(1, f.lower.as_py()), math.copysign(1, f.upper.as_py()), f.nans) == (-1, 1, 1)
    assert (a.path, a.lower.as_py(), a.upper.as_py(), a.nulls) == ("s.a", 1, 3, 2)
    assert (b.lower.as_py(), b.upper.as_py()) == ("x", "y")
    assert (element.path, element.lower, element.upper) == ("l.list.element", None, None)


def test_results_travel_as_bytes(tmp_path):
    values = {pa.int64(): 5, pa.string(): "é\x00", pa.binary(): b"\xff", pa.timestamp("us", "UTC"): 7}
    table = pa.table({f"c{n}": build([value, None], kind) for n, (kind, value) in enumerate(values.items())})
    table = table.append_column("none", pa.nulls(2, pa.int32()))
    (file,) = write_file(table, Layout("zorder", ("c0",)), tmp_path, partition=4)
    batches = [written([file]), tallies([tally_bytes(ReadTally(3, 10, 8))]), written([])]
    (told,), (read,) = read_results(pa.Table.from_batches(batches))
    assert told == ReadTally(3, 10, 8)
    assert (read.path, read.size, read.rows, read.partition) == (file.path, file.size, 2, 4)
    assert read.columns == file.columns
    assert isinstance(read, Written)
    assert isinstance(read.columns[0], ColumnMetrics)


def test_key_value_metadata_goes_into_the_footer_and_partitions_into_folders(tmp_path):
    table = pa.table({"x": [1, 2]})
    layout = Layout("zorder", ("x",))
    (file,) = write_file(
        table, layout, tmp_path, partition=1, footer={"k": json.dumps("é")}, subfolders=("p=a", "p=b c")
    )
    assert Path(file.path).parent == tmp_path / "run" / "p=b c"
    assert json.loads(pq.read_metadata(file.path).metadata[b"k"]) == "é"


# --- choosing --------------------------------------------------------------------------------------------------------

LAYOUT = Layout("zorder", ("x",))


def snapshot_of(sizes, partition, in_layout):
    count = len(sizes)
    counts = np.zeros(count, np.int64)
    files = Files(
        paths=pa.array([f"f{number}" for number in range(count)], pa.string()),
        sizes=np.array(sizes, np.int64), rows=counts, deleted=counts, delete_files=counts, added_by=counts,
        layout_ids=pa.array([LAYOUT.id if yes else None for yes in in_layout], pa.string()),
        partition=np.array(partition, np.int64), partitions=tuple("abcde"), bounds={},
    )  # fmt: skip
    return Snapshot("t", "delta", "/t", 1, None, pa.schema({"x": pa.int64()}), (), files, {})


FILES = st.lists(st.tuples(st.integers(1, 100), st.integers(0, 3), st.booleans()), max_size=20)


@given(FILES, st.booleans(), st.one_of(st.none(), st.integers(1, 300)))
def test_files_in_the_layout_are_left_alone_and_a_bounded_run_makes_progress_within_its_bound(files, full, most):
    sizes, partition, done = map(list, zip(*files, strict=True)) if files else ([], [], [])
    snapshot = snapshot_of(sizes, partition, done)
    wanted = [number for number in range(len(files)) if full or not done[number]]
    try:
        chosen = choose(snapshot, LAYOUT, full=full, most_bytes=most).tolist()
    except ZonalError:
        assert most is not None
        assert wanted
        assert all(sizes[n] > most for n in wanted), "some file would fit"
        return
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(wanted)
    if most is None:
        assert chosen == wanted
    else:
        assert sum(sizes[n] for n in chosen) <= most
        assert bool(chosen) == bool(wanted)


@given(FILES, st.one_of(st.none(), st.integers(1, 300)))
def test_commits_have_every_file_once_and_keep_their_bound(files, most):
    sizes, partition, done = map(list, zip(*files, strict=True)) if files else ([], [], [])
    snapshot = snapshot_of(sizes, partition, done)
    commits = in_commits(snapshot, np.arange(len(files)), LAYOUT, most)
    assert sorted(number for commit in commits for number in commit.tolist()) == list(range(len(files)))
    assert all(len(commit) for commit in commits)
    if most is None:
        assert len(commits) == bool(files)
    else:
        assert all(len(commit) == 1 or snapshot.files.sizes[commit].sum() <= most for commit in commits)


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 12)))
def test_files_are_found_again_by_their_path(there, asked):
    snapshot = snapshot_of([1] * 10, [0] * 10, [False] * 10)
    found = still_there(snapshot, [f"f{number}" for number in [*there, *asked]])
    assert set(found.tolist()) == {number for number in [*there, *asked] if number < 10}
