"""Values of every type are carried along, and types that a format lacks are refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from support.arrow_values import VALUES, build
from support.cluster_tables import (
    FORMATS,
    IN_A_BUCKET,
    Meanwhile,
    Parquet,
    home,
    never,
    opened_with,
)
from zonal.errors import TableError


def every_type():
    """A column of every type, plain and in lists and structs, with nulls; from the strategies of `arrow_values`."""
    columns = {"id": pa.array(range(24))}
    for kind, values in VALUES.items():
        plain = build([*_drawn(values), None, None], kind)
        name = "".join(letter if letter.isalnum() else "_" for letter in f"{kind}_{len(columns)}")
        columns[name] = plain
        if not pa.types.is_dictionary(kind):
            columns[f"{name}_list"] = pa.ListArray.from_arrays(pa.array([0, 0, *range(2, 25)], pa.int32()), plain)
            columns[f"{name}_struct"] = pa.StructArray.from_arrays([plain, pa.array(range(24))], ["v", "n"])
    keys = pa.array([f"k{number}" for number in range(24)])
    columns["map"] = pa.MapArray.from_arrays(pa.array(range(25), pa.int32()), keys, columns["id"])
    return pa.table(columns)


def _drawn(values):
    """Draw 22 values of a strategy, the same every time."""
    found = []

    @seed(0)
    @settings(max_examples=3, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(values, min_size=22, max_size=22))
    def draw(drawn):
        found.append(drawn)

    draw()
    return found[-1]


@pytest.fixture(scope="module")
def all_types():
    return every_type()


def held(kind, target):
    """What a format stores values of a type as, None where it has no such type."""
    if pa.types.is_duration(kind):
        return pa.int64()  # so it is in Parquet's own schema, too
    unknown = kind == pa.uint64() or pa.types.is_decimal256(kind) or kind == pa.timestamp("ns", "UTC")
    if target != "parquet" and unknown:
        return None
    return None if target == "delta" and (pa.types.is_time(kind) or kind == pa.uuid()) else kind


def without_types_of(table, target):
    """Leave out what a format refuses."""

    def fits(kind):
        if kind.num_fields:
            return all(fits(kind.field(number).type) for number in range(kind.num_fields))
        return held(kind, target) is not None

    return table.select([field.name for field in table.schema if fits(field.type)])


@pytest.mark.parametrize("target", [*FORMATS, IN_A_BUCKET])
def test_values_of_every_type_are_carried_along(target, all_types, tmp_path):
    copy = home(target, tmp_path, "copy")
    before = without_types_of(all_types, copy.format)
    assert before.num_columns > 60
    source = Parquet(tmp_path, "source").make([before])  # pyarrow can't write slices of string views
    type(source).cluster(opened_with(source, copy.options), by=["id"], into=copy.name)
    read = pa.concat_tables([pq.read_table(file.path) for file in source.files()])
    assert_values(pq.read_table(copy.files()[0].path), read)
    if target != "parquet":
        copy.cluster(by="id", layout="hilbert", runner=Meanwhile())
        assert_values(pq.read_table(copy.files()[0].path), read)
        assert copy.rows().num_rows == 24


def test_a_key_in_a_struct_is_clustered_by_beside_a_uuid(tmp_path):
    rows = [{"n": n * 7919 % 100, "u": n.to_bytes(16, "big")} for n in range(100)]
    kind = pa.struct({"n": pa.int64(), "u": pa.uuid()})
    before = pa.table({"id": pa.array(range(100)), "s": pa.array([r["n"] for r in rows])})
    inner = pa.StructArray.from_arrays(
        [before["s"].combine_chunks(), build([r["u"] for r in rows], pa.uuid())], list("nu")
    )
    assert inner.type == kind
    source = Parquet(tmp_path, "source").make([before.append_column("inner", inner)])
    copy = Parquet(tmp_path, "copy")
    done = source.cluster(layout="linear(inner.n)", into=copy.name)
    assert done.change.rows == 100
    found = pq.read_table(copy.files()[0].path)
    assert found["s"].to_pylist() == sorted(before["s"].to_pylist())
    assert [value["n"] for value in found["inner"].to_pylist()] == found["s"].to_pylist()


def assert_values(found, expected):
    places = np.argsort(found["id"].to_numpy()).tolist()
    assert expected["id"].to_pylist() == list(range(24))
    for name in expected.column_names:
        values = [repr(value) for value in expected[name].to_pylist()]
        column = found[name].cast(expected[name].type) if "duration" in name else found[name]
        assert [repr(column[at].as_py()) for at in places] == values, name


@pytest.mark.parametrize(
    ("target", "kind"),
    [(target, kind) for target in ("delta", "iceberg") for kind in VALUES if held(kind, target) is None],
    ids=str,
)
def test_types_that_a_format_lacks_are_refused_by_the_columns_name(target, kind, tmp_path):
    source = Parquet(tmp_path, "source").make([pa.table({"id": [1], "odd": build([None], kind)})])
    copy = home(target, tmp_path, "copy")
    with pytest.raises(TableError, match="'odd' has the type"):
        type(source).cluster(opened_with(source, copy.options), by="id", into=copy.name, runner=never)
    assert not copy.root.exists()
