"""Tables of every format for tests of `cluster`: made and read by the formats' own libraries, never by zonal."""

import json
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from support.cluster_options import grouped
from support.iceberg_rewriting import Writer
from support.iceberg_tables import properties_in
from support.local_runner import run_here
from zonal.verbs.cluster import cluster

IN_PLACE = ["delta", "iceberg v1", "iceberg v2", "iceberg v3"]
NEWEST = ["delta", "iceberg v2"]
STORED = "delta in a bucket"
IN_A_BUCKET = pytest.param(
    STORED, marks=pytest.mark.skipif(find_spec("obstore") is None, reason="obstore needs Python 3.11")
)
"""A kind for tests that matter in object stores, too; what is about files of other kinds isn't repeated there."""
FORMATS = ["parquet", "delta", "iceberg"]


def telemetry(rows, seed=0, *, first=0):
    """Rows with two key columns, `x` and `y`, and a number of its own for every row."""
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + rows)),
            "x": pa.array(draw.integers(0, 1000, rows)),
            "y": pa.array(draw.normal(size=rows)),
            "s": pa.array([f"device-{number:04d}" for number in draw.integers(0, 300, rows)], pa.string()),
            "p": pa.array(draw.choice(["a", "b", "c"], rows).tolist(), pa.string()),
        }
    )


def parts_of(table, parts):
    """Cut a table into about equal parts, as so many appends write it."""
    step = max(1, -(-table.num_rows // parts))
    return [table.slice(start, step) for start in range(0, table.num_rows, step)]


def assert_same_rows(found, expected):
    """Both have the same rows equally often, in whatever order; DuckDB judges."""
    assert sorted(found.column_names) == sorted(expected.column_names)
    found = found.select(expected.column_names)
    with duckdb.connect() as judge:
        judge.register("found", found)
        judge.register("expected", expected)
        lost = judge.sql("FROM (FROM expected EXCEPT ALL FROM found) LIMIT 5").fetchall()
        more = judge.sql("FROM (FROM found EXCEPT ALL FROM expected) LIMIT 5").fetchall()
    assert not lost, f"rows are lost, such as {lost}"
    assert not more, f"rows are there that shouldn't be, such as {more}"
    assert found.num_rows == expected.num_rows


def row_counts(table, columns=None):
    """Count equal rows, of every type that Arrow has; NaN equals NaN."""
    names = sorted(columns or table.column_names)
    columns = [table.column(name).to_pylist() for name in names]
    return Counter(map(repr, zip(*columns, strict=True)))


@dataclass(frozen=True)
class DataFile:
    """A live file of a table, as the format's own library lists it."""

    path: Path
    rows: int
    partition: tuple
    """Values of the partition columns in order."""

    @property
    def size(self):
        return self.path.stat().st_size

    @property
    def footer(self):
        return pq.read_metadata(self.path)


class Home:
    """Where a table of one format lives; `make` creates it."""

    format = ""
    keys = ()

    def __init__(self, folder, name="t"):
        self.folder, self.table_name = Path(folder), name
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def options(self):
        return {}

    def cluster(self, runner=run_here, **asked):
        return cluster(self.name, spark=runner, **self.options, **grouped(**asked))

    def plan(self, **asked):
        return cluster(self.name, dry_run=True, **self.options, **grouped(**asked))

    def listing(self):
        """Every file below the table's folder with its time of change."""
        return {path: path.stat().st_mtime_ns for path in self.root.rglob("*") if path.is_file()}

    def run_folders(self):
        """Folders of zonal's runs that hold a file."""
        return sorted({path.parent for path in self.root.rglob("zonal-*/**/*.parquet")})

    def strays(self):
        """Parquet files in folders of runs that no version of the table has ever had."""
        known = self.ever()
        return [path for path in self.root.rglob("zonal-*/**/*.parquet") if path not in known]


class Delta(Home):
    """A Delta table, by deltalake."""

    format = "delta"

    @property
    def root(self):
        return self.folder / self.table_name

    @property
    def location(self):
        return self.root

    @property
    def name(self):
        return f"delta:{self.location}"

    @property
    def theirs(self):
        """Storage options of deltalake."""
        return None

    def make(self, parts, partition_by=(), properties=None):
        self.keys = tuple(partition_by)
        first, *rest = parts
        write_deltalake(
            self.location, first, partition_by=list(partition_by) or None, configuration=properties,
            storage_options=self.theirs,
        )  # fmt: skip
        for part in rest:
            self.append(part)
        return self

    def append(self, table):
        write_deltalake(self.location, table, mode="append", storage_options=self.theirs)

    @property
    def table(self):
        return DeltaTable(self.location, storage_options=self.theirs)

    def rows(self):
        return pa.table(self.table.to_pyarrow_table())

    def version(self):
        return self.table.version()

    def ever(self):
        lines = (line for log in (self.root / "_delta_log").glob("*.json") for line in log.read_text().split("\n"))
        adds = (json.loads(line).get("add") for line in lines if line)
        return {self.root / unquote(add["path"]) for add in adds if add}

    def files(self):
        actions = pa.table(self.table.get_add_actions(flatten=True)).to_pylist()
        return [
            DataFile(
                self.root / unquote(action["path"]),
                action["num_records"],
                tuple(action[f"partition.{key}"] for key in self.table.metadata().partition_columns),
            )
            for action in actions
        ]


class Iceberg(Home):
    """An Iceberg table in a SQLite catalog, by PyIceberg."""

    format = "iceberg"

    def __init__(self, folder, name="t", *, version=2):
        super().__init__(folder, name)
        self.format_version = version
        self.catalog = SqlCatalog("test", **self.properties)
        self.catalog.create_namespace_if_not_exists("db")

    @property
    def root(self):
        return self.folder / "warehouse" / "db" / self.table_name

    @property
    def name(self):
        return f"iceberg:db.{self.table_name}"

    @property
    def options(self):
        return {"catalog": "test", "storage_options": self.properties}

    @property
    def properties(self):
        """Properties of the catalog."""
        return properties_in(self.folder)

    def make(self, parts, partition_by=(), properties=None):
        self.keys = tuple(partition_by)
        given = {"format-version": str(min(self.format_version, 2)), **(properties or {})}
        table = self.catalog.create_table(f"db.{self.table_name}", parts[0].schema, properties=given)
        if partition_by:
            with table.update_spec() as spec:
                for column in partition_by:
                    spec.add_identity(column)
        for part in parts:
            if part.num_rows:
                self.append(part)
        if self.format_version == 3:
            upgrade(self.catalog, f"db.{self.table_name}")
        return self

    def append(self, rows):
        self.table.append(rows)

    @property
    def table(self):
        return self.catalog.load_table(f"db.{self.table_name}")

    def rows(self):
        return self.table.scan().to_arrow()

    def version(self):
        return self.table.metadata.current_snapshot_id

    def ever(self):
        return {Path(path.removeprefix("file://")) for path in self.paths_ever()}

    def paths_ever(self):
        table = self.table
        manifests = {m.manifest_path: m for snapshot in table.snapshots() for m in snapshot.manifests(table.io)}
        entries = (e for m in manifests.values() for e in m.fetch_manifest_entry(table.io, discard_deleted=False))
        return {entry.data_file.file_path for entry in entries}

    def files(self):
        return [
            DataFile(Path(task.file.file_path.removeprefix("file://")), task.file.record_count, self._values(task.file))
            for task in self.table.scan().plan_files()
        ]

    def _values(self, file):
        fields = self.table.spec().fields
        return tuple(file.partition[at] for at, field in enumerate(fields) if str(field.transform) != "void")


class Parquet(Home):
    """A folder of Parquet files, with Hive's folders where it is partitioned; pyarrow writes and DuckDB reads it."""

    format = "parquet"

    @property
    def root(self):
        return self.folder / self.table_name

    @property
    def name(self):
        return f"parquet:{self.root}"

    def make(self, parts, partition_by=(), properties=None):  # noqa: ARG002 - plain files have none
        self.keys = tuple(partition_by)
        self.root.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(parts):
            if partition_by:
                pq.write_to_dataset(
                    part, self.root, partition_cols=list(partition_by), basename_template=f"{number}-{{i}}.parquet"
                )
            else:
                pq.write_table(part, self.root / f"{number}.parquet")
        return self

    def rows(self):
        with duckdb.connect() as judge:
            files = f"read_parquet('{self.root}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false)"
            return judge.sql(f"FROM {files}").to_arrow_table()

    def files(self):
        return [
            DataFile(path, pq.read_metadata(path).num_rows, tuple(self._values(path)))
            for path in sorted(self.root.rglob("*.parquet"))
        ]

    def _values(self, path):
        for part in path.relative_to(self.root).parts[:-1]:
            value = unquote(part.partition("=")[2])
            yield None if value == "__HIVE_DEFAULT_PARTITION__" else value


HOMES = {"delta": Delta, "iceberg": Iceberg, "parquet": Parquet}


def home(kind, folder, name="t"):
    """`delta`, `parquet`, `iceberg`, `iceberg v1` to `iceberg v3`, or `STORED`."""
    if kind == STORED:
        from support.mirrored_tables import Mirrored

        return Mirrored(folder, name)
    if kind.startswith("iceberg v"):
        return Iceberg(folder, name, version=int(kind[-1]))
    return HOMES[kind](folder, name)


def upgrade(catalog, name):
    """Upgrade a table to version 3 and give all rows ids, by a snapshot that changes nothing."""
    writer = Writer(catalog, name, format_version=3)
    for manifest in list(writer.manifests):
        writer.manifests.remove(manifest)
        writer.manifests.append(manifest)
        writer.add_rows(manifest.added_rows_count)
    writer.publish()


class Meanwhile:
    """A runner during which another writer does something, after the rows are read and before the commit."""

    def __init__(self, *others, forever=False):
        self.others, self.forever = list(others), forever
        self.runs = 0

    def __call__(self, *given):
        result = run_here(*given)
        if self.forever:
            self.others[self.runs % len(self.others)]()
        elif self.runs < len(self.others):
            self.others[self.runs]()
        self.runs += 1
        return result


def rows_in(file, column="id"):
    return pq.ParquetFile(file.path).read([column]).column(0).to_pylist()


def partitions_hold(table, before, key="p"):
    """Every file has rows of one partition only, and says which."""
    partition_of = dict(zip(before["id"].to_pylist(), before[key].to_pylist(), strict=True))
    for file in table.files():
        assert {partition_of[number] for number in rows_in(file)} == set(file.partition), file.path


def never(*_):
    """Be a runner that must not be called."""
    raise AssertionError("there was nothing to run")


def opened_with(table, options):
    """Stand for a table whose catalog and storage have other options."""

    class Opened:
        name = table.name

    Opened.options = options
    return Opened()
