"""Executors with the oldest packages that they may have make the same files as this machine does by itself."""

import subprocess
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import zonal
from clusters.sessions import classic
from support.cluster_tables import Delta, Iceberg, assert_same_rows, parts_of, telemetry
from zonal.spark.shipment import OLDEST_NUMPY, OLDEST_PYARROW

pytestmark = pytest.mark.clusters
ROWS = telemetry(6000)


@pytest.fixture(scope="module")
def oldest_python(tmp_path_factory):
    """A Python with the oldest numpy and pyarrow, from PyPI."""
    folder = tmp_path_factory.mktemp("python") / "oldest"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    wanted = [f"numpy=={OLDEST_NUMPY[0]}.{OLDEST_NUMPY[1]}.*", f"pyarrow=={OLDEST_PYARROW[0]}.{OLDEST_PYARROW[1]}.*"]
    command = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *wanted]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if ran.returncode:
        pytest.skip(f"pip can't install {' and '.join(wanted)} for this Python: {ran.stderr[-300:].strip()}")
    return python


@pytest.fixture(scope="module")
def spark(master, oldest_python):
    with classic(master, oldest_python) as session:
        yield session


def ranges(table):
    """The number of rows of each file, and the ranges of its columns."""
    found = [pq.read_table(file.path) for file in table.files()]
    return sorted(
        [(file.num_rows, *(str(pc.min_max(file[name])) for name in ("x", "y", "s"))) for file in found],
    )


@pytest.mark.parametrize("home", [Delta, Iceberg])
@pytest.mark.parametrize("layout", ["hilbert(x, y, s)", "linear(s, y)"])
def test_files_are_those_that_this_machine_makes_by_itself(spark, tmp_path, home, layout):
    made = []
    for name, place in (("executors", spark), ("here", zonal.Spark(master="here"))):
        table = home(tmp_path / name).make(parts_of(ROWS, 3), ["p"])
        files = zonal.NewFiles(target_file_size=20_000, verify=True)
        zonal.cluster(table.name, layout=layout, files=files, spark=place, **table.options)
        assert_same_rows(table.rows(), ROWS)
        made.append(ranges(table))
    assert made[0] == made[1]
