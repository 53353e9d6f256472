"""How often Iceberg's metadata files are fetched: object stores charge for each, and answer slowly."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from support.iceberg_rewriting import opened
from support.iceberg_tables import Handmade, catalog_in
from support.local_runner import run_here
from zonal.rewriting.new_files import NewFiles
from zonal.tables.iceberg.manifests import read_contents
from zonal.tables.iceberg.table import IcebergTable
from zonal.verbs.advise import advise
from zonal.verbs.audit import audit, audit_versions
from zonal.verbs.cluster import cluster
from zonal.verbs.explain import explain
from zonal.verbs.show import show
from zonal.workload.logs import Logs

APPENDS, ROWS = 5, 20_000


@pytest.fixture
def catalog(tmp_path):
    """Make a table with a manifest for each of its files."""
    catalog = catalog_in(tmp_path)
    numbers = np.random.default_rng(5).permutation(ROWS)
    rows = pa.table({"id": numbers, "k": numbers % 7})
    table = catalog.create_table("db.t", schema=rows.schema)
    for number in range(APPENDS):
        table.append(rows.slice(number, ROWS))
    return catalog


@pytest.fixture
def fetched(monkeypatch):
    """Count the Avro files that are opened, by path."""
    counts = Counter()
    original = PyArrowFileIO.new_input

    def new_input(self, location):
        if location.endswith(".avro"):
            counts[location] += 1
        return original(self, location)

    monkeypatch.setattr(PyArrowFileIO, "new_input", new_input)
    return counts


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "queries.sql"
    path.write_text(
        "".join(f"SELECT * FROM t WHERE k = {n % 7} AND id BETWEEN {n * 500} AND {n * 500 + 50};\n" for n in range(20))
    )
    return path


VERBS = {
    "show": lambda table, _: show(table),
    "explain": lambda table, _: explain(table, where="id = 7"),
    "advise": lambda table, log: advise(table, queries=log),
    "audit": lambda table, log: audit(table, queries=log),
    "audit --history": lambda table, log: audit_versions(table, queries=Logs(Logs.of(log).paths), versions=3),
    "cluster --dry-run": lambda table, _: cluster(table, by=["id", "k"], layout="hilbert", dry_run=True),
    "cluster --dry-run --queries": lambda table, log: cluster(
        table, layout="tree", queries=log, files=NewFiles(target_file_size="20KB"), dry_run=True
    ),
}


def is_list(path):
    return path.rpartition("/")[2].startswith("snap-")


@pytest.mark.parametrize("verb", VERBS)
def test_each_manifest_is_fetched_once_by_a_verb(catalog, fetched, log, verb):
    table = opened(catalog)
    fetched.clear()
    VERBS[verb](table, log)
    manifests = [count for path, count in fetched.items() if not is_list(path)]
    assert manifests == [1] * APPENDS, f"{fetched.total()} fetches of {len(fetched)} files"
    lists = fetched.total() - APPENDS
    assert lists == (4 if "--history" in verb else 1), "today's, and that of each version that is asked for"


def test_a_commit_reads_the_newest_manifests_itself(catalog, fetched):
    table = opened(catalog)
    head = table.table.current_snapshot()
    manifests = [manifest.manifest_path for manifest in head.manifests(table.table.io)]
    fetched.clear()
    cluster(table, by=["id"], layout="linear", spark=run_here)
    assert opened(catalog).table.current_snapshot().snapshot_id != head.snapshot_id
    assert [fetched[path] for path in (head.manifest_list, *manifests)] == [2] * (1 + APPENDS), "for each of the steps"


def test_a_cache_that_is_full_changes_no_answer(catalog, fetched, monkeypatch):
    expected = [show(opened(catalog).at(version.id)).table.files for version in opened(catalog).versions()]
    monkeypatch.setattr("zonal.tables.iceberg.live_files.MOST_KEPT", 2)
    table = opened(catalog)
    fetched.clear()
    assert [show(table.at(version.id)).table.files for version in table.versions()] == expected == [1, 2, 3, 4, 5]
    manifests = sorted(count for path, count in fetched.items() if not is_list(path))
    assert manifests == [1, 1, 1, 2, 3], "two files are kept, the others are read for each version that has them"


def test_entries_that_were_read_are_known_by_what_they_inherit(tmp_path):
    """An upgrade to format version 3 gives row ids to manifests that are already there."""
    table = catalog_in(tmp_path).create_table("db.t", schema=pa.schema({"id": pa.int64()}))
    made = Handmade(table, format_version=3)
    made.add_manifest([made.data_file("a.parquet")])
    before, known = IcebergTable.from_metadata(made.commit()), {}
    made.manifests[0]._data[-1] = 100
    after = IcebergTable.from_metadata(made.commit())
    for version, first in [(before, None), (after, 100)]:
        (part,) = read_contents(version.table.io, version.table.current_snapshot().manifest_list, known)
        assert [entry.first_row_id for entry in part.entries] == [first]
