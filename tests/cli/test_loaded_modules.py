"""What commands load: a library that takes long to import is left alone by the commands that don't need it."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

FORMATS = {"deltalake", "pyiceberg"}
"""Libraries of table formats; Delta tables are read without one."""
SELDOM = {"pandas", "plotly", "pyspark", "py4j", "obstore", "botocore", "duckdb", "polars"}
"""What no command on this machine's disks needs, without a page and without Spark."""
HEAVY = {"numpy", "pyarrow", "sqlalchemy", "sqlglot"} | FORMATS | SELDOM
LOADED = """
import sys
from zonal.cli import main
sys.argv = ["zonal", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    rows = pa.table({"id": range(100), "x": range(100)})
    write_deltalake(folder / "delta", rows)
    pq.write_table(rows, folder / "new.parquet")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", rows.schema)
    table.append(rows)
    (folder / "metadata.txt").write_text(table.metadata_location)
    return folder


def loaded(lake, line, code=LOADED):
    """Run a command in a process of its own; return the modules that it loaded."""
    words = line.replace("METADATA", (lake / "metadata.txt").read_text()).split()
    told = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=lake,
        env={"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(lake / "state"), "HOME": str(lake)},
    )
    return set(told.stderr.split())


@pytest.mark.parametrize("line", ["--help", "--version", "show --help", "cluster --help", "audit --help"])
def test_help_loads_none_of_the_libraries(lake, line):
    assert loaded(lake, line) & HEAVY == set()


def test_importing_zonal_loads_none_of_the_libraries(lake):
    code = "import sys, zonal; print(*sys.modules, file=sys.stderr)"
    assert loaded(lake, "", code) & (HEAVY | {"rich", "typer"}) == set()


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("show delta", set()),
        ("show delta --output json", set()),
        ("show new.parquet", set()),
        ("show METADATA", {"pyiceberg"}),
        ("explain delta --where id=5", {"sqlglot"}),
        ("cluster delta --by id,x --dry-run", set()),
        ("cluster delta --by id,x --dry-run --output json", set()),
        ("cluster delta --by id,x --master here --no-database", set()),
        ("append delta new.parquet --by id,x --master here --no-database", set()),
    ],
)
def test_a_command_loads_what_it_needs(lake, line, needed):
    found = loaded(lake, line)
    assert found & HEAVY == {"numpy", "pyarrow"} | needed
    assert "zonal.learning" not in found, "nothing is learned without queries"


def test_a_history_that_was_begun_is_opened(lake):
    home = lake / "state" / "zonal"
    home.mkdir(parents=True)
    (home / "history.db").touch()
    try:
        assert "sqlalchemy" in loaded(lake, "show delta")
        assert "sqlalchemy" not in loaded(lake, "show delta --no-database")
    finally:
        (home / "history.db").unlink()


def test_pandas_can_be_loaded_after_all(lake):
    code = """
import sys
from zonal.cli.spared_pandas import spare_pandas
spare_pandas()
import pyarrow as pa
pa.array([1])
assert "pandas" not in sys.modules
assert pa.table({"x": [1, 2]}).to_pandas()["x"].sum() == 3
import pandas
assert pa.table(pandas.DataFrame({"x": [1, 2]})).num_rows == 2
assert not [each for each in sys.meta_path if type(each).__module__.startswith("zonal")]
"""
    assert loaded(lake, "", code) == set()
