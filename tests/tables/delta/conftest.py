"""Delta tables that several test modules begin with."""

import deltalake
import pyarrow as pa
import pytest

from support.delta_tables import LogWriter


@pytest.fixture
def log(tmp_path):
    return LogWriter(tmp_path / "table")


@pytest.fixture
def plain(tmp_path):
    """Three files of a hundred rows each, written by deltalake."""
    for start in (0, 100, 200):
        rows = pa.table({"x": range(start, start + 100), "s": [f"s{i}" for i in range(start, start + 100)]})
        deltalake.write_deltalake(tmp_path, rows, mode="append")
    return tmp_path
