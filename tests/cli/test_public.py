"""What `import zonal` gives: names that are there with and without Spark, and docstrings that tell how to use them."""

import inspect
import subprocess
import sys
from importlib import import_module

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import zonal
from zonal.errors import ZonalError
from zonal.rewriting.dry_run import ClusteringPlan

FUNCTIONS = [name for name in zonal.__all__ if inspect.isfunction(getattr(zonal, name))]
WITHOUT_SPARK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def without_spark(code):
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK + code], capture_output=True, text=True, check=False, timeout=120
    )
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def test_names_are_listed_before_they_are_used():
    listed = subprocess.run(
        [sys.executable, "-c", "import zonal; print(*dir(zonal))"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(zonal.__all__) <= set(listed)
    assert "__doc__" in listed


def test_every_name_is_there_without_spark():
    told = without_spark(
        "from zonal import *\nimport zonal\nprint(all(hasattr(zonal, n) for n in zonal.__all__), read)"
    )
    assert told[0].startswith("True <function read")


@pytest.mark.parametrize(
    "call",
    ["zonal.clustered('zorder(a)', files=2)", "zonal.read(None, 'nowhere')", "zonal.cluster(sys.argv[1], by='id')"],
)
def test_what_needs_spark_says_so_when_it_is_called(call, tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    call = call.replace("sys.argv[1]", repr(str(tmp_path / "t")))
    told = without_spark(f"import zonal\ntry:\n    {call}\nexcept zonal.ZonalError as error:\n    print(error)")
    assert told[0].startswith("This needs Spark. Run: pip install 'zonal[spark]'")


def test_a_broken_pyspark_is_not_taken_for_a_missing_one(monkeypatch):
    from zonal.spark.session import check_pyspark

    class Broken:
        def find_spec(self, name, *_):
            if name == "pyspark":
                raise ModuleNotFoundError("No module named 'py4j'", name="py4j")

    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    for name in [each for each in sys.modules if each.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match="py4j"):
        check_pyspark()


def test_a_dry_run_returns_the_plan_and_changes_nothing(tmp_path):
    name = str(tmp_path / "t")
    write_deltalake(name, pa.table({"id": range(100), "x": range(100)}))
    plan = zonal.cluster(name, by=["id"], dry_run=True)
    assert isinstance(plan, ClusteringPlan)
    assert (plan.layout, plan.change.files, plan.change.rows, plan.change.commits) == ("zorder(id)", 1, 100, 1)
    assert DeltaTable(name).version() == 0
    with pytest.raises(ZonalError, match="dry_run tells what a rewrite in place would do: leave out into"):
        zonal.cluster(name, by=["id"], into=f"delta:{name}2", dry_run=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_tell_every_argument_and_have_an_example(name):
    function = getattr(zonal, name)
    told = inspect.getdoc(function)
    arguments, _, example = told.partition("Arguments:")[2].partition("Example:")
    assert ">>> " in example
    lines = [line.split(":")[0] for line in arguments.splitlines() if line.startswith("    ") and line[4] != " "]
    described = [each.strip() for line in lines for each in line.split(",")]
    assert described == list(inspect.signature(function).parameters), "all of them, in their order"


@pytest.mark.parametrize("name", ["Clustered", "Layout", "Logs", "Ranks"])
def test_classes_have_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(zonal, name))


def test_functions_have_one_first_line_in_their_own_module():
    for name in FUNCTIONS:
        function = getattr(zonal, name)
        assert getattr(import_module(function.__module__), name) is function
        assert inspect.getdoc(function).splitlines()[0].endswith(".")


def test_what_is_no_table_is_refused_by_every_verb():
    for given in (3, None, b"events"):
        for verb in (zonal.show, zonal.explain, zonal.advise, zonal.audit, zonal.cluster, zonal.prune):
            named = {zonal.show: {}, zonal.cluster: {"by": "x"}}.get(verb, {"queries": ["q.sql"]})
            named = {"where": "x = 1"} if verb in (zonal.explain, zonal.prune) else named
            with pytest.raises(zonal.ZonalError, match="is no table: give its path or name"):
                verb(given, **named)


def test_a_single_column_may_be_a_text(tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    assert [each.depth.column for each in zonal.show(str(tmp_path), columns="id").columns] == ["id"]
