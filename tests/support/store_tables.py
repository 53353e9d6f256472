"""Tables in object stores for tests of `cluster`: made and read by the formats' own libraries."""

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from support.cluster_options import grouped
from support.cluster_tables import upgrade
from support.local_runner import run_here
from zonal.verbs.cluster import cluster


class StoredHome:
    """Where a table of one format lives in a bucket; `make` creates it."""

    def __init__(self, server, name="t"):
        self.server, self.table_name = server, name

    @property
    def options(self):
        return {"storage_options": self.server.options}

    def cluster(self, runner=run_here, **asked):
        return cluster(self.name, spark=runner, **self.options, **grouped(**asked))

    def leftovers(self):
        """Objects of runs that no version has, empty ones in place of folders, and uploads without an end."""
        known = self.ever()
        found = self.server.objects()
        strays = [key for key in found if "/zonal-" in f"/{key}" and key not in known]
        hidden = [key for key in found if key.endswith(("/", ".tmp"))]
        return [*strays, *hidden, *self.server.uploads()]


class StoredDelta(StoredHome):
    """A Delta table, by deltalake."""

    format = "delta"

    @property
    def location(self):
        return f"s3://box/{self.table_name}"

    @property
    def name(self):
        return f"delta:{self.location}"

    def make(self, parts, partition_by=()):
        for part in parts:
            write_deltalake(
                self.location, part, mode="append", partition_by=list(partition_by) or None,
                storage_options=self.theirs,
            )  # fmt: skip
        return self

    @property
    def theirs(self):
        return self.server.options | {"allow_http": "true"}

    def append(self, rows):
        write_deltalake(self.location, rows, mode="append", storage_options=self.theirs)

    @property
    def table(self):
        return DeltaTable(self.location, storage_options=self.theirs)

    def rows(self):
        return pa.table(self.table.to_pyarrow_table())

    def version(self):
        return self.table.version()

    def ever(self):
        found = set()
        for version in range(self.version() + 1):
            uris = DeltaTable(self.location, version=version, storage_options=self.theirs).file_uris()
            found |= {uri.removeprefix("s3://box/") for uri in uris}
        return found


class StoredIceberg(StoredHome):
    """An Iceberg table in a SQLite catalog whose warehouse is in a bucket, by PyIceberg."""

    format = "iceberg"

    def __init__(self, server, folder, name="t", *, version=2):
        super().__init__(server, name)
        self.folder, self.format_version = folder, version
        self.catalog = SqlCatalog("test", **self.properties)
        self.catalog.create_namespace_if_not_exists("db")

    @property
    def properties(self):
        options = self.server.options
        return {
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": "s3://box/warehouse",
            "s3.endpoint": options["aws_endpoint_url"],
            "s3.access-key-id": options["aws_access_key_id"],
            "s3.secret-access-key": options["aws_secret_access_key"],
            "s3.region": "us-east-1",
        }

    @property
    def options(self):
        return {"catalog": "test", "storage_options": self.properties}

    @property
    def name(self):
        return f"iceberg:db.{self.table_name}"

    def make(self, parts, partition_by=()):
        given = {"format-version": str(min(self.format_version, 2))}
        table = self.catalog.create_table(f"db.{self.table_name}", parts[0].schema, properties=given)
        if partition_by:
            with table.update_spec() as spec:
                for column in partition_by:
                    spec.add_identity(column)
        for part in parts:
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
        table = self.table
        manifests = {m.manifest_path: m for snapshot in table.snapshots() for m in snapshot.manifests(table.io)}
        entries = (e for m in manifests.values() for e in m.fetch_manifest_entry(table.io, discard_deleted=False))
        return {entry.data_file.file_path.removeprefix("s3://box/") for entry in entries}
