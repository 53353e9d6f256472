"""A reader yields exactly the live rows of a file, row group by row group, in the schema of the table."""

import datetime as dt
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.parquet_damage import with_chunk
from support.reader_files import NUMBERS, bitmap, live, reader, source, write_numbers
from zonal.errors import TableError
from zonal.plan.rewrite import Reading, Vector
from zonal.storage import Storage
from zonal.values.cache import Cache
from zonal.worker.read.data_file import RowGroupSize
from zonal.worker.read.reader import Reader


def test_positions_go_on_through_the_row_groups_that_are_asked_for(tmp_path):
    path = write_numbers(tmp_path)
    own, file = reader(path, NUMBERS), source(path, rows=100, vector=Vector(2, inline=bitmap({31, 99})))
    assert [group.rows for group in own.row_groups(file)] == [30, 30, 30, 10]
    last, second = own.rows(file, [3, 1])
    assert live([last]) == [(p, p * 7) for p in range(90, 99)]
    assert live([second]) == [(p, p * 7) for p in (30, *range(32, 60))]
    assert (last.read, second.read) == (10, 30)
    for wrong in (4, -1):
        with pytest.raises(TableError, match=rf"data\.parquet.*4 row groups.*number {wrong}"):
            list(own.rows(file, [wrong]))


def test_sizes_of_row_groups_are_those_of_the_footer(tmp_path):
    path = write_numbers(tmp_path, s=["text"] * 100)
    footer = pq.ParquetFile(path).metadata
    sizes = [sum(footer.row_group(g).column(c).total_compressed_size for c in range(2)) for g in range(4)]
    rows = (30, 30, 30, 10)
    assert reader(path, NUMBERS).row_groups(source(path)) == [
        RowGroupSize(*pair, "SNAPPY") for pair in zip(rows, sizes, strict=True)
    ]


def test_constants_win_over_the_file_and_have_the_type_of_the_schema(tmp_path):
    path = write_numbers(tmp_path, 3, part=[1, 2, 3])
    schema = pa.schema({"n": pa.int64(), "part": pa.int64(), "day": pa.date32(), "none": pa.string()})
    constants = {
        "part": pa.scalar(9, pa.int32()),
        "day": pa.scalar(dt.date(2026, 1, 1)),
        "none": pa.scalar(None, pa.string()),
    }
    (part,) = reader(path, Reading(schema)).rows(source(path, constants=constants))
    assert part.data.schema == schema
    expected = {"part": 9, "day": dt.date(2026, 1, 1), "none": None}
    assert part.data.to_pylist() == [{"n": n, **expected} for n in (0, 7, 14)]
    (part,) = reader(path, Reading(schema)).rows(source(path, constants=constants), columns=["day"])
    assert part.data.to_pylist() == [{"day": dt.date(2026, 1, 1)}] * 3
    with pytest.raises(TableError, match=r"data\.parquet.*'n'.*string, which can't be read as int64"):
        list(reader(path, Reading(schema)).rows(source(path, constants={"n": pa.scalar("x")})))
    required = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    with pytest.raises(TableError, match="required column 'n' is null"):
        list(reader(path, Reading(required)).rows(source(path, constants={"n": pa.scalar(None, pa.int64())})))


def test_row_ids_come_from_the_file_or_from_the_position(tmp_path):
    schema = pa.schema([*NUMBERS.schema, pa.field("id", pa.int64(), nullable=False), pa.field("version", pa.int64())])
    reading = Reading(schema, row_id="id", row_version="version")
    path = write_numbers(tmp_path, 5, 3)
    vector = Vector(1, inline=bitmap({1}))
    file = source(path, first_row_id=100, row_version=8, vector=vector)
    found = [row for part in reader(path, reading).rows(file) for row in part.data.to_pylist()]
    assert found == [{"n": p * 7, "id": 100 + p, "version": 8} for p in (0, 2, 3, 4)]
    with pytest.raises(TableError, match="no value in the required column 'id'"):
        list(reader(path, reading).rows(source(path, row_version=8)))
    optional = Reading(pa.schema([f.with_nullable(True) for f in schema]), row_id="id", row_version="version")
    (part, _) = reader(path, optional).rows(source(path))
    assert part.data.to_pylist()[0] == {"n": 0, "id": None, "version": None}
    path = write_numbers(tmp_path, 3, id=pa.array([50, None, 51]), version=pa.array([None, 2, None], pa.int64()))
    (part,) = reader(path, reading).rows(source(path, first_row_id=100, row_version=8))
    assert part.data["id"].to_pylist() == [50, 101, 51]
    assert part.data["version"].to_pylist() == [8, 2, 8]
    assert part.data.schema == schema


def test_rows_have_the_schema_wanted_even_where_all_are_deleted(tmp_path):
    path = write_numbers(tmp_path, 4, 2)
    schema = pa.schema({"n": pa.int64(), "u": pa.list_(pa.uuid())}, metadata={"k": "v"})
    first, second = reader(path, Reading(schema)).rows(source(path, vector=Vector(2, inline=bitmap({0, 1}))))
    assert (first.data.num_rows, first.read, len(first.positions)) == (0, 2, 0)
    for part in (first, second):
        assert part.data.schema.equals(schema, check_metadata=True)


def test_views_lose_deleted_rows_too(tmp_path):
    path = write_numbers(tmp_path, 3, v=["a", "b", "c"])
    (part,) = reader(path, Reading(pa.schema({"v": pa.string_view()}))).rows(
        source(path, vector=Vector(1, inline=bitmap({1})))
    )
    assert part.data["v"].to_pylist() == ["a", "c"]


def test_no_columns_are_columns_too(tmp_path):
    path = write_numbers(tmp_path, 3)
    (part,) = reader(path, NUMBERS).rows(source(path, vector=Vector(1, inline=bitmap({1}))), columns=[])
    assert part.positions.tolist() == [0, 2]
    assert part.data.num_columns == 0


def test_an_unknown_column_is_refused_with_the_nearest_name(tmp_path):
    path = write_numbers(tmp_path)
    with pytest.raises(TableError, match=r"Unknown column 'N'\. Did you mean 'n'"):
        list(reader(path, NUMBERS).rows(source(path), columns=["N"]))


def test_missing_and_damaged_files_are_named(tmp_path):
    own = reader(tmp_path / "x", NUMBERS)
    with pytest.raises(TableError, match=r"gone\.parquet' doesn't exist"):
        own.row_groups(source(tmp_path / "gone.parquet"))
    (tmp_path / "junk.parquet").write_bytes(b"PAR1" + b"x" * 50)
    with pytest.raises(TableError, match=r"Can't read the file .*junk\.parquet"):
        own.row_groups(source(tmp_path / "junk.parquet"))
    path = write_numbers(tmp_path)
    with pytest.raises(TableError, match=r"data\.parquet.*has 100 rows, but the table's metadata says 99"):
        list(own.rows(source(path, rows=99)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_bytes_of_a_file_are_a_table_error_or_unnoticed(data):
    sink = pa.BufferOutputStream()
    numbers = pa.table({"n": np.arange(300), "s": ["text"] * 300})
    pq.write_table(numbers, sink, row_group_size=100, write_page_checksum=True)
    raw = bytearray(sink.getvalue().to_pybytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.parquet").write_bytes(raw)
        reading = Reading(numbers.schema)
        try:
            parts = list(reader(f"{folder}/a.parquet", reading).rows(source(f"{folder}/a.parquet", rows=300)))
        except TableError as error:
            told = str(error)
        else:
            told = "a.parquet" if sum(len(part.positions) for part in parts) == 300 else "rows are lost"
        assert "a.parquet" in told


IMPOSSIBLE = {
    "negative size": {"compressed": -200},
    "size beyond the file": {"compressed": 8000},
    "negative offset": {"page": -300},
    "offset beyond the file": {"page": 8000},
    "negative number of values": {"values": -30},
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_footers_whose_numbers_cannot_be_are_refused_by_name(case, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": np.arange(90)}), path, row_group_size=30, use_dictionary=False, compression="none")
    assert path.stat().st_size < 8000
    with_chunk(path, 1, **IMPOSSIBLE[case])
    for look in (Reader.row_groups, lambda own, file: list(own.rows(file))):
        with pytest.raises(TableError, match=r"a\.parquet.*footer is damaged: column 'n' of row group 1 has"):
            look(reader(path, NUMBERS), source(path))


def test_a_checksum_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    options = {"write_page_checksum": True, "use_dictionary": False, "compression": "none"}
    pq.write_table(pa.table({"n": np.full(100, 0x7777777777777777)}), path, **options)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"w" * 400, b"w" * 399 + b"v", 1))
    with pytest.raises(TableError, match=r"a\.parquet.*(CRC|checksum)"):
        list(reader(path, NUMBERS).rows(source(path)))


def test_the_file_is_closed_with_the_iterator(tmp_path):
    path = write_numbers(tmp_path)
    rows = reader(path, NUMBERS).rows(source(path))
    next(rows)
    assert any(str(path) in str(link) for link in open_files())
    rows.close()
    assert not any(str(path) in str(link) for link in open_files())


def open_files():
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("needs /proc")
    return [link.readlink() for link in folder.iterdir() if link.is_symlink()]


def test_what_a_worker_gets_can_be_pickled(tmp_path):
    path = write_numbers(tmp_path)
    reading, storage = pickle.loads(pickle.dumps((NUMBERS, Storage(str(tmp_path), {}))))  # noqa: S301
    assert len(live(Reader(reading, storage).rows(source(path)))) == 100


def test_a_cache_keeps_what_was_used_last_within_its_limit():
    made = []

    def make(key):
        return lambda: made.append(key) or key * 10

    cache = Cache(100, lambda value: value)
    assert [cache.get(key, make(key)) for key in (3, 4, 3, 5, 3, 4, 90)] == [30, 40, 30, 50, 30, 40, 900]
    assert made == [3, 4, 5, 4, 90], "4 was the oldest when 5 came"
    assert (cache.peek(90), cache.peek(4)) == (900, None)


def test_one_row_group_is_in_memory_at_a_time(tmp_path):
    path = write_numbers(tmp_path, 1_000_000, 250_000)
    before = pa.total_allocated_bytes()
    for part in reader(path, NUMBERS).rows(source(path)):
        assert pa.total_allocated_bytes() - before < 2 * 250_000 * 8, "a row group and the file's buffers"
        del part
        assert pa.total_allocated_bytes() - before < 250_000 * 8, "the reader itself keeps no rows"
