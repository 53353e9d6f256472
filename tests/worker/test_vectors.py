"""Deletion vectors that zonal writes are those that other libraries read."""

import numpy as np
import pytest
from hypothesis import given, settings
from pyroaring import BitMap64

from support.roaring_sets import sets
from zonal.errors import TableError
from zonal.storage import Storage
from zonal.worker.read.deletes import read_vector
from zonal.worker.read.roaring import positions
from zonal.worker.write.vectors import encoded, write_vectors


@settings(max_examples=60, deadline=None)
@given(sets())
def test_another_library_reads_the_same_positions(chosen):
    data = encoded(np.array(sorted(chosen), np.int64))
    assert set(BitMap64.deserialize(data)) == chosen
    assert positions(data, count=len(chosen)).tolist() == sorted(chosen)


def test_several_vectors_lie_in_one_file(tmp_path):
    wanted = {"a": np.array([0, 9]), "b": np.array([5]), "c": np.arange(0, 70_000, 3)}
    storage = Storage(str(tmp_path), {})
    vectors = write_vectors(storage, f"{tmp_path}/run/v.bin", wanted)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["v.bin"]
    for name, vector in vectors.items():
        assert read_vector(vector, storage, 70_000).tolist() == wanted[name].tolist()
    data = (tmp_path / "run" / "v.bin").read_bytes()
    assert data[0] == 1
    assert sum(vector.size for vector in vectors.values()) == len(data) - 1


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "run").write_text("no folder")
    with pytest.raises(TableError, match=r"Can't write the file .*v\.bin"):
        write_vectors(Storage(str(tmp_path), {}), f"{tmp_path}/run/v.bin", {"a": np.array([1])})
