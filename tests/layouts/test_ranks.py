"""The laws of ranks: monotone, equal for equals, nulls below, the full width used, the same after JSON."""

import json
import math
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_values import KINDS, VALUES, arrays, build, order_key
from zonal.errors import ColumnError, RanksError
from zonal.layouts.ranks import MAX_KNOTS, ColumnRanks, Ranks

BITS = st.sampled_from([4, 8, 16, 32])


def fit(values, kind=None):
    return ColumnRanks.fit(pa.chunked_array([pa.array(values, kind)]))


@st.composite
def sample_and_data(draw):
    kind = draw(KINDS)
    return draw(arrays(kind)), draw(arrays(kind))


@given(sample_and_data(), BITS, st.none() | st.integers(0, 2**62))
def test_codes_follow_the_order_of_the_values(columns, bits, salt):
    sample, data = columns
    codes = ColumnRanks.fit(sample).codes(data, bits, salt)
    assert codes.dtype == np.uint32
    assert int(codes.max(initial=0)) < 2**bits, "a code has more than its bits"
    rows = sorted(zip(map(order_key, data.to_pylist()), codes.tolist(), strict=True), key=lambda row: row[0])
    for (value, code), (next_value, next_code) in pairwise(rows):
        if salt is None:
            assert code <= next_code, f"{value} has code {code}, {next_value} has {next_code}"
            assert value != next_value or code == next_code, f"{value} has two codes"
    for value, code in rows:
        assert (code == 0) == (value == (0,)), "code 0 is the nulls' own"


@given(sample_and_data(), BITS)
def test_ranks_are_the_same_after_json(columns, bits):
    sample, data = columns
    ranks = Ranks.fit(pa.table({"x": sample}), ["x"])
    read = Ranks.from_json(ranks.to_json())
    table = pa.table({"x": data})
    assert (read.codes(table, "x", bits) == ranks.codes(table, "x", bits)).all()


@given(arrays(), BITS)
def test_a_value_does_not_depend_on_its_chunk(column, bits):
    ranks = ColumnRanks.fit(column)
    whole = ranks.codes(column, bits)
    for row in range(len(column)):
        assert ranks.codes(column.slice(row, 1), bits)[0] == whole[row]


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=1, max_size=50), BITS)
def test_codes_are_duckdbs_percent_rank(values, bits):
    rows = pa.table({"x": pa.array(values, pa.int64()), "row": range(len(values))})
    told = duckdb.sql(
        "SELECT percent_rank() OVER (ORDER BY x NULLS FIRST) * (count(*) OVER () - 1) FROM rows ORDER BY row"
    ).fetchall()
    below = [round(value) for (value,) in told]
    expected = [0 if x is None else max(1, (b << bits) // len(values)) for x, b in zip(values, below, strict=True)]
    assert ColumnRanks.fit(rows["x"]).codes(rows["x"], bits).tolist() == expected


def test_percent_rank_of_many_floats_and_strings():
    rng = np.random.default_rng(3)
    rows = pa.table(
        {"f": np.round(rng.lognormal(0, 2, 3000), 1), "s": [f"user-{n}" for n in rng.integers(0, 900, 3000)]}
    )
    for name in ("f", "s"):
        told = duckdb.sql(f"SELECT percent_rank() OVER (ORDER BY {name}) * 2999 FROM rows").fetchnumpy()
        below = np.sort(np.round(next(iter(told.values()))).astype(int))
        expected = np.maximum(1, (below << 16) // 3000)
        assert (np.sort(ColumnRanks.fit(rows[name]).codes(rows[name], 16)) == expected).all()


def test_five_values_use_the_top_bits():
    column = pa.chunked_array([pa.array(["a", "b", "c", "d", "e"] * 20)])
    codes = ColumnRanks.fit(column).codes(column, 16)
    assert sorted(set(codes.tolist())) == [1, 13107, 26214, 39321, 52428]


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.timestamp("us"), pa.string(), pa.decimal128(30, 3)], ids=str
)
def test_quantiles_of_many_values_are_close(kind):
    """Beyond 4,096 distinct values a code is off by no more than two quantiles, whatever the distribution."""
    rng = np.random.default_rng(1)
    numbers = (rng.lognormal(8, 2.5, 60_000) * 100).astype(np.int64)
    column = pa.chunked_array([pa.array(numbers)])
    if kind == pa.string():
        column = pc.utf8_lpad(column.cast(pa.string()), 20, "0")
    elif kind == pa.timestamp("us"):
        column = column.cast(kind)
    else:
        column = column.cast(kind, safe=False)
    ranks = ColumnRanks.fit(column)
    assert len(ranks.below) <= MAX_KNOTS
    exact = np.searchsorted(np.sort(numbers), numbers) / len(numbers)
    error = np.abs(ranks.codes(column, 32) / 2**32 - exact)
    assert error.max() <= 2 / MAX_KNOTS
    assert len(json.dumps(ranks.to_dict())) < 60_000, "compact enough for a table's properties"


def test_heavy_values_among_many_keep_their_share():
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 10**9, 50_000)
    numbers[rng.random(50_000) < 0.3] = 500_000_000
    column = pa.chunked_array([pa.array(numbers)])
    ranks = ColumnRanks.fit(column)
    below, upto = (np.searchsorted(np.sort(numbers), 500_000_000, side) for side in ("left", "right"))
    low, heavy, high = ranks.codes(pa.chunked_array([[499_900_000, 500_000_000, 500_100_000]]), 16).tolist()
    assert heavy == below * 2**16 // 50_000, "the heavy value begins where the smaller ones end"
    assert high >= upto * 2**16 // 50_000, "larger values begin behind its share"
    assert low <= heavy


def test_interpolation_tells_more_values_apart_than_there_are_quantiles():
    column = pa.chunked_array([pa.array(np.arange(1_000_000))])
    ranks = ColumnRanks.fit(column.slice(0, 100_000))
    assert len(np.unique(ranks.codes(column.slice(0, 100_000), 32))) == 100_000


def test_salt_spreads_a_heavy_value_over_its_share():
    column = pa.chunked_array([pa.array(["a"] * 100 + ["b"] * 800 + ["c"] * 100)])
    for each in (column, column.dictionary_encode()):
        ranks = ColumnRanks.fit(each)
        salted = ranks.codes(each, 16, salt=5)
        assert len(np.unique(salted[100:900])) > 700
        assert salted[:100].max() < salted[100:900].min() <= salted[100:900].max() < salted[900:].min()
        assert (salted == ranks.codes(each, 16, salt=5)).all(), "the same seed gives the same codes"
        assert (salted != ranks.codes(each, 16, salt=6)).any()


@pytest.mark.parametrize("kind", list(VALUES), ids=str)
def test_no_sample_and_only_nulls_work(kind):
    for sample in ([], [None], [None, None]):
        ranks = ColumnRanks.fit(pa.chunked_array([build(sample, kind)]))
        assert ranks.codes(pa.chunked_array([build([None], kind)]), 8).tolist() == [0]


def test_nulls_without_a_type():
    ranks = ColumnRanks.fit(pa.chunked_array([pa.nulls(3)]))
    assert ranks.codes(pa.chunked_array([pa.nulls(2)]), 8).tolist() == [0, 0]
    assert fit([1, 2, 3]).codes(pa.chunked_array([pa.nulls(2)]), 8).tolist() == [0, 0]


def test_nan_only_and_all_equal():
    for value in (math.nan, 7.0):
        column = pa.chunked_array([pa.array([value] * 5)])
        assert set(ColumnRanks.fit(column).codes(column, 8).tolist()) == {1}


def test_run_ends_and_dictionaries_rank_as_plain_values():
    values = ["b", "b", None, "a", "a", "c"]
    plain = pa.chunked_array([pa.array(values)])
    expected = ColumnRanks.fit(plain).codes(plain, 8).tolist()
    with_null_entry = pa.DictionaryArray.from_arrays([0, 0, 1, 2, 2, 3], pa.array(["b", None, "a", "c"]))
    unused = pa.DictionaryArray.from_arrays(
        [0, 0, None, 2, 2, 3], pa.array(["b", "zz", "a", "c", *map(str, range(50))])
    )
    encoded = pc.run_end_encode(pa.array(values))
    for other in (with_null_entry, unused, encoded, encoded.slice(1), with_null_entry.slice(2)):
        column = pa.chunked_array([other])
        ranks = ColumnRanks.fit(plain)
        assert ranks.codes(column, 8).tolist() == expected[len(values) - len(other) :], str(other.type)


def test_wider_types_and_other_units_share_the_ranks():
    ranks = fit([1, 5, 9], pa.int32())
    assert ranks.codes(pa.chunked_array([pa.array([1, 5, 9], pa.int64())]), 8).tolist() == [1, 85, 170]
    micros = fit([0, 1_000_000, 2_000_000], pa.timestamp("us"))
    for unit, factor in (("s", 1), ("ms", 1000), ("ns", 10**9)):
        other = pa.chunked_array([pa.array([0, factor, 2 * factor], pa.timestamp(unit, "UTC"))])
        assert micros.codes(other, 8).tolist() == [1, 85, 170], unit
    far = pa.chunked_array([pa.array([-(2**62), 2**62], pa.timestamp("s"))])
    assert micros.codes(far, 8).tolist() == [1, 170], "times beyond the unit's range are clipped, not wrapped"


def test_values_of_another_type_are_refused():
    ranks = Ranks.fit(pa.table({"x": [1, 2]}), ["x"])
    with pytest.raises(RanksError, match="Column 'x': The ranks were fitted on int values, not on string"):
        ranks.codes(pa.table({"x": ["a"]}), "x", 8)
    with pytest.raises(RanksError, match="Column 'y' has no ranks"):
        ranks.codes(pa.table({"y": [1]}), "y", 8)


def test_struct_leaves_by_dotted_path():
    geo = pa.array([{"p": {"lat": 3.0}}, None, {"p": None}, {"p": {"lat": 1.0}}])
    table = pa.table({"geo": geo, "a.b": [4, 3, 2, 1], "a": pa.array([{"b": 1}] * 4)})
    ranks = Ranks.fit(table, ["geo.p.lat", "a.b"])
    assert ranks.codes(table, "geo.p.lat", 8).tolist() == [192, 0, 0, 128]
    assert ranks.codes(table, "a.b", 8).tolist() == [192, 128, 64, 1], "a column of the whole name comes first"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("shipdat", "Unknown column 'shipdat'. Did you mean 'shipdate'"),
        ("geo.lon", "Unknown column 'geo.lon'. Did you mean 'geo.lat'"),
        ("tags", "Column 'tags' has type 'list<item: int64>', which has no order. Cluster by another"),
        ("props", "Column 'props' has type .*map.*Cluster by another"),
        ("geo", "Column 'geo' has type .*struct.*Name one of its fields with a dot"),
    ],
)
def test_bad_columns_are_named(column, message):
    table = pa.table(
        {
            "shipdate": pa.array([1], pa.date32()),
            "tags": pa.array([[1]]),
            "props": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
            "geo": pa.array([{"lat": 1.0}]),
        }
    )
    with pytest.raises(ColumnError, match=message):
        Ranks.fit(table, [column])


def test_all_bad_columns_come_together_and_twins_are_ambiguous():
    with pytest.raises(ColumnError, match=r"'b'.*'c'"):
        Ranks.fit(pa.table({"a": [1]}), ["b", "a", "c"])
    twins = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ColumnError, match="ambiguous"):
        Ranks.fit(twins, ["a"])


def test_long_strings_make_small_ranks():
    """Values of megabytes, and values that differ only after a long prefix, are cut to what tells them apart."""
    long = ["x" * 100_000 + str(n) for n in range(50)] + ["y" * n for n in range(50)]
    ranks = fit(long)
    assert len(json.dumps(ranks.to_dict())) < 20_000
    codes = ranks.codes(pa.chunked_array([pa.array(sorted(long))]), 16)
    assert (np.diff(codes.astype(int)) >= 0).all()
    assert len(np.unique(codes)) >= 50


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": ["%%%"]}, "damaged"),
        ({"words": []}, "different lengths"),
        ({"rows": -1}, "counts of rows"),
        ({"rows": "x"}, "can't be read"),
        ({"depths": "eJwDAAAAAAE="}, "different lengths"),
        ({"spread": None}, "can't be read"),
        ({"family": 3, "below": 7}, "can't be read"),
    ],
)
def test_damaged_ranks_are_refused(change, message):
    stored = json.loads(Ranks.fit(pa.table({"x": [1, 2, 3]}), ["x"]).to_json())
    stored["columns"]["x"].update(change)
    with pytest.raises(RanksError, match=message):
        Ranks.from_json(json.dumps(stored))


def test_a_bomb_is_not_inflated():
    import base64
    import zlib

    stored = json.loads(Ranks.fit(pa.table({"x": [1, 2, 3]}), ["x"]).to_json())
    stored["columns"]["x"]["below"] = base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    with pytest.raises(RanksError, match="unexpected size"):
        Ranks.from_json(json.dumps(stored))


def test_knots_out_of_order_are_refused():
    one, other = fit([1, 2, 3]), fit([9, 8, 7])
    stored = one.to_dict() | {"words": [ColumnRanks.to_dict(other)["words"][0]]}
    assert ColumnRanks.from_dict(stored).rows == 3, "larger knots are knots too"
    from zonal.values.packed import pack

    stored["words"] = [pack(np.array([3, 2, 1], np.uint64))]
    with pytest.raises(RanksError, match="knots are not in order"):
        ColumnRanks.from_dict(stored)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 1}', '{"version": 2, "columns": {}}', '{"version": 1, "columns": 3}']
)
def test_what_is_no_ranks_is_refused(text):
    with pytest.raises(RanksError, match="stored ranks"):
        Ranks.from_json(text)
