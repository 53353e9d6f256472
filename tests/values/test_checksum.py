"""Checksums of rows: the same in every order and form, and another one as soon as a value changes."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_values import VALUES, build, columns
from support.cluster_tables import Delta, home, parts_of, telemetry
from zonal.errors import ZonalError
from zonal.values.checksum import MODULUS, row_checksum
from zonal.values.selection import take_rows
from zonal.worker import tasks


@given(columns(), st.randoms())
def test_rows_in_another_order_and_in_other_chunks_have_the_same_checksum(column, random):
    table = pa.table({"n": pa.array(range(len(column))), "v": column})
    order = list(range(len(column)))
    random.shuffle(order)
    shuffled = take_rows(table, np.array(order, np.int64))
    assert row_checksum(shuffled) == row_checksum(table)
    parts = [table.slice(0, len(order) // 3), table.slice(len(order) // 3)]
    assert sum(map(row_checksum, parts)) % MODULUS == row_checksum(table)


@given(st.sampled_from(list(VALUES)), st.data())
def test_another_value_gives_another_checksum(kind, data):
    one, two = (data.draw(st.one_of(st.none(), VALUES[kind])) for _ in range(2))
    first, second = build([one], kind), build([two], kind)
    same = bits(first) == bits(second)
    sums = [row_checksum(pa.table({"v": column})) for column in (first, second)]
    assert (sums[0] == sums[1]) == same


def bits(array):
    """The value down to its bits: a zero with a sign is another value."""
    value = array.to_pylist()[0]
    return struct.pack("d", value) if isinstance(value, float) else value


@given(st.lists(st.one_of(st.none(), st.text("abé", max_size=400)), min_size=1, max_size=8))
def test_texts_have_the_same_checksum_in_every_form(texts):
    def checksum(column):
        return row_checksum(pa.table({"v": column}))

    plain = pa.array(texts, pa.string())
    forms = [plain.cast(kind) for kind in (pa.large_string(), pa.string_view(), pa.binary())]
    assert {checksum(form) for form in (*forms, plain.dictionary_encode())} == {checksum(plain)}


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 511, 512, 513, 5000])
def test_every_byte_of_a_text_counts(length):
    def checksum(text):
        return row_checksum(pa.table({"v": ["before", text, "behind"]}))

    text = "x" * length
    places = {0, 7, 8, length // 2, length - 9, length - 8, length - 1} & set(range(length))
    changed = [text[:at] + "y" + text[at + 1 :] for at in places]
    changed += [text + "\0", text[1:]]
    every = [checksum(other) for other in [text, *changed]]
    assert len(set(every)) == len(every)


def test_values_that_change_places_change_the_checksum():
    table = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})
    swapped = [
        pa.table({"a": [4, 2, 3], "b": [1, 5, 6]}),  # between columns
        pa.table({"a": [1, 2, 3], "b": [5, 4, 6]}),  # between rows
        pa.table({"a": [1, 2, 3, 3], "b": [4, 5, 6, 6]}),
        pa.table({"a": [1, 2], "b": [4, 5]}),
    ]
    assert row_checksum(table) not in map(row_checksum, swapped)
    lists = [[[1], [2, 3]], [[1, 2], [3]], [[2, 3], [1]], [[1], [3, 2]]]
    sums = [row_checksum(pa.table({"v": pa.array([value])})) for value in lists]
    assert len(set(sums)) == 4


def test_rows_of_another_partition_have_another_checksum():
    table = pa.table({"a": [1, 2]})
    assert row_checksum(table, 1) == row_checksum(table, np.array([1, 1]))
    assert len({row_checksum(table, part) for part in (0, 1, 2)}) == 3
    assert row_checksum(table, np.array([1, 2])) != row_checksum(table, np.array([2, 1]))


def swap_values(words, rows):
    """Two rows exchange their values of one column, as a wrong order of one column would make it."""
    at = rows.schema.get_field_index("y")
    column = rows.column(at).combine_chunks()
    return words, rows.set_column(at, "y", pc.take(column, pa.array([1, 0, *range(2, len(column))])))


def change_text(words, rows):
    at = rows.schema.get_field_index("s")
    column = rows.column(at)
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks])
    return words, rows.set_column(at, "s", pa.chunked_array([["device-xxxx", *column.to_pylist()[1:]]]))


def repeat_row(words, rows):
    """A row is there twice, and another one is missing: the count is right."""
    return words, take_rows(rows, np.array([0, 0, *range(2, rows.num_rows)]))


@pytest.mark.parametrize("harm", [swap_values, change_text, repeat_row], ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("kind", ["delta", "iceberg v2"])
def test_rows_that_change_on_their_way_are_never_committed(harm, kind, tmp_path, monkeypatch):
    rows = telemetry(400)
    table = home(kind, tmp_path).make(parts_of(rows, 3), ["p"])
    version, real = table.version(), tasks.decode
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "decode", lambda *given: harm(*real(*given)))
        with pytest.raises(ZonalError, match="as many rows were written as read, but not the same ones"):
            table.cluster(by=["x", "y"], verify=True)
    assert table.version() == version
    assert not table.strays()


def test_a_copy_whose_rows_change_on_their_way_is_not_published(tmp_path, monkeypatch):
    source, copy = Delta(tmp_path, "source").make([telemetry(300)]), Delta(tmp_path, "copy")
    real = tasks.decode
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "decode", lambda *given: repeat_row(*real(*given)))
        with pytest.raises(ZonalError, match="not the same ones"):
            source.cluster(by="x", into=copy.name, verify=True)
    assert not copy.root.exists() or not list(copy.root.rglob("*.parquet"))
