"""The Python of workers: what it lacks, whether it is this one, and functions that reach it."""

import os
import pickle
import pickletools
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pyarrow as pa
import pytest

from zonal.errors import ZonalError
from zonal.spark import session
from zonal.spark.failures import reason
from zonal.spark.shipment import carried


def test_a_worker_says_which_python_on_which_host_lacks_what():
    from pyspark import cloudpickle

    code = (
        "import sys, pickle\n"
        "class Bare:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('numpy', 'zonal'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Bare())\n"
        f"sys.path.append({str(Path(cloudpickle.__file__).parent.parent.parent)!r})\n"
        "pickle.loads(sys.stdin.buffer.read())"
    )
    from zonal.layouts.keys import key_words

    for by_value, lacks in ((True, "numpy"), (False, "zonal")):
        pickled = cloudpickle.dumps(carried(key_words, by_value=by_value))
        told = subprocess.run([sys.executable, "-c", code], check=False, input=pickled, capture_output=True, timeout=60)
        last = told.stderr.decode().splitlines()[-1]
        assert last.startswith(
            f"ImportError: the Python of a Spark worker, {sys.executable} on {os.uname().nodename}, "
        )
        assert f"has no {lacks}. Install numpy 2.1 and pyarrow 17.0 or later there, or set PYSPARK_PYTHON" in last
        assert reason(Exception(told.stderr.decode())) == last.removeprefix("ImportError: ")


def test_a_worker_whose_numpy_lacks_a_name_says_its_versions():
    from pyspark import cloudpickle

    from zonal.layouts.keys import key_words

    code = (
        "import sys, pickle, numpy\n"
        "for name in ('uint64', 'uint32', 'ndarray'):\n"
        "    delattr(numpy, name)\n"
        "pickle.loads(sys.stdin.buffer.read())"
    )
    pickled = cloudpickle.dumps(carried(key_words))
    told = subprocess.run([sys.executable, "-c", code], check=False, input=pickled, capture_output=True, timeout=60)
    last = told.stderr.decode().splitlines()[-1]
    assert f"has numpy {numpy.__version__} and pyarrow {pa.__version__}, which can't run what was sent (" in last
    assert reason(Exception(told.stderr.decode())) == last.removeprefix("ImportError: ")


@pytest.mark.parametrize("package", ["numpy", "pyarrow"])
def test_a_worker_with_an_old_package_says_so_even_where_it_knows_all_names(package):
    from pyspark import cloudpickle

    code = (
        f"import sys, pickle, numpy, pyarrow\n{package}.__version__ = '1.26.4'\npickle.loads(sys.stdin.buffer.read())"
    )
    pickled = cloudpickle.dumps(carried(sorted))
    told = subprocess.run([sys.executable, "-c", code], check=False, input=pickled, capture_output=True, timeout=60)
    assert (
        "which can't run what was sent (too old). Install numpy 2.1 and pyarrow 17.0 or later" in told.stderr.decode()
    )


@pytest.mark.parametrize(("package", "problem"), [("numpy", "AttributeError"), ("pyarrow", "TypeError")])
def test_a_worker_with_a_newer_package_that_lacks_something_says_what_the_driver_has(package, problem):
    from pyspark import cloudpickle

    def step(batches):
        yield from batches
        raise AttributeError("no such name") if problem == "AttributeError" else TypeError("no such argument")

    code = (
        f"import sys, pickle, numpy, pyarrow\n{package}.__version__ = '99.1.0'\n"
        "found = pickle.loads(sys.stdin.buffer.read())([1, 2])\n"
        "print(next(found), next(found))\nnext(found)"
    )
    pickled = cloudpickle.dumps(carried(step))
    told = subprocess.run([sys.executable, "-c", code], check=False, input=pickled, capture_output=True, timeout=60)
    last = told.stderr.decode().splitlines()[-1]
    assert told.stdout == b"1 2\n"
    assert f"ImportError: the Python of a Spark worker, {sys.executable} on {os.uname().nodename}, has numpy " in last
    assert f"Install numpy {numpy.__version__} and pyarrow {pa.__version__}, as the driver has, there, or set" in last
    assert reason(Exception(told.stderr.decode())) == last.removeprefix("ImportError: ")


def test_functions_that_are_sent_name_nothing_private_of_numpy():
    """Such names differ between versions; those of arrays and scalars themselves are numpy's own for all of them."""
    from pyspark import cloudpickle

    from zonal.spark.frame import _Plan
    from zonal.spark.reservoir import draw, merge
    from zonal.spark.row_partitions import addressed
    from zonal.spark.shipment import shipped
    from zonal.worker.read.scan import scan_step
    from zonal.worker.tasks import read_step, write_step

    placement = SimpleNamespace(key_count=1, few_valued=())
    steps = [read_step(None, None, placement), write_step(pa.schema({}), None, placement), scan_step(None, None, None)]
    with shipped():
        pickled = [cloudpickle.dumps(step) for step in (*steps, addressed(draw(1, 1)), merge(1), _Plan.places)]
    texts = {text for each in pickled for _, text, _ in pickletools.genops(each) if isinstance(text, str)}
    private = {text for text in texts if re.match(r"numpy\.(\w+\.)*_", text)}
    assert private <= {"numpy._core.multiarray", "numpy._core.numeric"}


def test_carried_functions_run_on_the_driver_too():
    assert carried(sorted, by_value=False)([2, 1]) == [1, 2]
    from pyspark import cloudpickle

    assert pickle.loads(cloudpickle.dumps(carried(sorted)))([2, 1]) == [1, 2]  # noqa: S301


def test_another_python_of_the_same_kind_is_not_this_one(tmp_path):
    (tmp_path / "python").symlink_to(sys.executable)
    assert session._is_this_python(sys.executable)
    assert not session._is_this_python(str(tmp_path / "python")), "its packages are others"


class Local:
    """A classic session on this machine, with a Python of its own for its workers."""

    def __init__(self, python, master="local[2]"):
        self.pythonExec = python
        self.master = master
        self.conf = self.sparkContext = self

    def get(self, *_):
        return self.master


def test_a_python_that_is_not_there_is_told_before_a_lazy_query_is_made():
    with pytest.raises(
        ZonalError, match=r"can't start Python as '/no/such/python': there is no such program\. Set PYSPA"
    ):
        session.check_worker_python(Local("/no/such/python"))
    session.check_worker_python(Local(sys.executable))
    session.check_worker_python(Local("/no/such/python", "yarn"))  # workers elsewhere may have it
    assert session.is_on_this_machine(Local(sys.executable))
    assert not session.is_on_this_machine(Local("/no/such/python"))


@pytest.mark.parametrize("spark", [None, 5, "local[2]"])
def test_what_is_no_session_is_refused_by_name(spark):
    with pytest.raises(ZonalError, match=r"^spark.* is not a Spark session\.$"):
        session.check_worker_python(spark)
