"""Delta tables whose rows another writer deletes by deletion vectors; their logs are written by hand."""

import json
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from support.cluster_tables import Delta, row_counts
from support.delta_rewrites import data_file, stored_vector
from support.delta_tables import LogWriter, metadata, protocol
from zonal.tables.delta.vectors import vector_location

READER_FEATURES = {"deletionVectors", "columnMapping"}
ENABLED = {"delta.enableDeletionVectors": "true"}


class Vectored(Delta):
    """A table of one file per part, `0.parquet` and so on."""

    def create(self, parts, fields, *, partitioning=(), values=None, more_features=(), configuration=None):
        """Commit the parts; `values` has the partition values of each."""
        self.log = LogWriter(self.root)
        values = values or [{}] * len(parts)
        named = enumerate(zip(parts, values, strict=True))
        adds = [data_file(self.log, f"{number}.parquet", part, values=each) for number, (part, each) in named]
        head = metadata(*fields, partitioning=partitioning, configuration={**ENABLED, **(configuration or {})})
        reader = {"deletionVectors", *more_features} & READER_FEATURES
        kept = protocol(3, 7, reader_features=sorted(reader), writer_features=["deletionVectors", *more_features])
        self.log.commit(kept, head, *adds)
        self.live = {add["add"]["path"]: add["add"] for add in adds}
        return self

    def commit(self, *actions):
        """Commit as another writer does, after whatever version is the newest."""
        self.log.commit(*actions, version=self.newest + 1)

    @property
    def newest(self):
        return max(int(path.stem) for path in (self.root / "_delta_log").glob("*.json"))

    def delete(self, path, positions, vector=stored_vector):
        """Let a file's deletion vector be these positions; none: the file without a vector."""
        old = self.live[path]
        gone = {"path": path, "dataChange": True, "deletionTimestamp": 0}
        gone |= {"deletionVector": old["deletionVector"]} if "deletionVector" in old else {}
        new = {name: value for name, value in old.items() if name != "deletionVector"}
        if positions:
            new["deletionVector"] = vector(self.log, positions)
        self.commit({"remove": gone}, {"add": new})
        self.live[path] = new

    def stored_deletes(self):
        """The files of vectors that zonal wrote, whether the table has them or not."""
        return sorted(self.root.rglob("zonal-*/deletion_vector_*"))

    def append(self, rows, name="more.parquet", **more):
        self.commit(data_file(self.log, name, rows, **more))

    def actions(self, version):
        lines = (self.root / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def bodies(self, kind, version):
        return [action[kind] for action in self.actions(version) if kind in action]

    def rows(self):
        """All rows, as deltalake's query engine reads them, which knows deletion vectors."""
        found = QueryBuilder().register("t", DeltaTable(self.root)).execute("select * from t")
        return pa.table(found.read_all() if hasattr(found, "read_all") else found)

    def strays(self):
        """Files in folders of runs that no version has ever added."""
        known = set()
        for version in range(self.newest + 1):
            for add in self.bodies("add", version):
                known.add(self.root / unquote(add["path"]))
                if (vector := add.get("deletionVector")) and vector["storageType"] == "u":
                    known.add(self.root / vector_location(vector, "", str).removeprefix("/"))
        return [path for path in self.root.rglob("zonal-*/**/*") if path.is_file() and path not in known]


def assert_rows(table, expected):
    """The table has these rows equally often, NaN and negative zero told apart from other values."""
    assert row_counts(table.rows()) == row_counts(expected)
