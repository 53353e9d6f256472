"""Iceberg tables of a schedule: other writers by PyIceberg, and by hand where it can't write."""

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import ManifestContent
from pyiceberg.types import LongType

from simulation.events import local
from simulation.ledgers import Ledger
from support.cluster_tables import Iceberg, parts_of
from support.iceberg_rewriting import Writer, delete_positions, delete_vectors
from zonal.layouts.layout import Layout


class IcebergLedger(Ledger):
    """An Iceberg table of version 2 in a SQLite catalog."""

    ACTS = (
        "append", "append", "append", "delete", "delete", "overwrite", "replace_part", "add_column", "rename_key",
        "drop_key", "evolve", "set_property", "expire", "recluster", "recreate", "positions", "positions", "branch",
        "rollback",
    )  # fmt: skip
    version = 2

    def make(self) -> "IcebergLedger":
        self.table = Iceberg(self.folder, version=self.version)
        self.keys = self.rng.choice([[], ["p"]]) if self.version < 3 else []
        self.table.make(parts_of(self.fresh(self.rng.randrange(60, 300)), self.rng.randrange(1, 5)), self.keys)
        self.settled()
        return self

    # --- acts ---

    def whole(self, rows: pa.Table) -> pa.Table:
        """Add columns that others have added, as nulls."""
        for name in self.table.table.schema().column_names:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int64()))
        return rows

    def append(self) -> None:
        self.table.append(self.whole(self.fresh(self.rng.randrange(1, 60))))

    def delete(self) -> None:
        low, high = self.some()
        self.table.table.delete(f"id >= {low} and id < {high}")
        self.forget(low, high)

    def overwrite(self) -> None:
        self.rows = {}
        self.table.table.overwrite(self.whole(self.fresh(40)))

    def replace_part(self) -> None:
        low, high = self.some()
        self.forget(low, high)
        self.table.table.overwrite(self.whole(self.fresh(10)), f"id >= {low} and id < {high}")

    def add_column(self) -> None:
        self.extra += 1
        with self.table.table.update_schema() as update:
            update.add_column(f"e{self.extra}", LongType())

    def rename_key(self) -> None:
        if (name := self.key()) is not None:
            new = f"{name}{len(self.done)}"
            with self.table.table.update_schema() as update:
                update.rename_column(self.names[name], new)
            self.names[name] = new

    def drop_key(self) -> None:
        if (name := self.key()) is not None:
            with self.table.table.update_schema(allow_incompatible_changes=True) as update:
                update.delete_column(self.names.pop(name))

    def evolve(self) -> None:
        has = any(field.name == "p" for field in self.table.table.spec().fields)
        with self.table.table.update_spec() as update:
            update.remove_field("p") if has else update.add_identity("p")

    def set_property(self) -> None:
        with self.table.table.transaction() as change:
            change.set_properties({"owner": str(self.rng.random())})

    def expire(self) -> None:
        """Forget all snapshots but those that branches stand at."""
        table = self.table.table
        kept = {ref.snapshot_id for ref in table.metadata.refs.values()}
        if old := [entry.snapshot_id for entry in table.snapshots() if entry.snapshot_id not in kept]:
            table.maintenance.expire_snapshots().by_ids(old).commit()

    def positions(self) -> None:
        """Delete rows by position: a position delete file, or in version 3 a deletion vector."""
        tasks = [task for task in self.table.table.scan().plan_files() if not task.delete_files]
        if not tasks or len(self.table.table.specs()) > 1 + bool(self.keys) or self.version < 2:
            return
        file = self.rng.choice(sorted(tasks, key=lambda task: task.file.file_path)).file
        ids = pq.read_table(local(file.file_path), columns=["id"])["id"].to_pylist()
        at = sorted(self.rng.sample(range(len(ids)), min(3, len(ids))))
        if self.version == 3:
            delete_vectors(self.table.catalog, self.folder, {file.file_path: at})
        else:
            more = {"partition": file.partition, "spec_id": file.spec_id} if self.keys else {}
            delete_positions(self.table.catalog, self.folder, {file.file_path: at}, **more)
        for position in at:
            self.rows.pop(ids[position], None)

    def branch(self) -> None:
        table = self.table.table
        if (now := table.metadata.current_snapshot_id) is not None:
            table.manage_snapshots().create_branch(now, f"b{len(self.done)}").commit()

    def rollback(self) -> None:
        before, old = dict(self.rows), self.table.version()
        if old is not None:
            self.append()
            self.table.table.manage_snapshots().set_current_snapshot(old).commit()
            self.rows = before

    def recreate(self) -> None:
        """Drop the table, which leaves its files, and make another one of the same name."""
        self.table.catalog.drop_table(f"db.{self.table.table_name}")
        self.forget_table()
        self.keys = []
        self.table.make(parts_of(self.fresh(80), 2), [])

    # --- what is asked afterwards ---

    def read(self) -> pa.Table:
        return self.table.rows()

    def live(self) -> dict[str, int]:
        found = {}
        for task in self.table.table.scan().plan_files():
            for file in (task.file, *task.delete_files):
                found[local(file.file_path)] = file.file_size_in_bytes
        return found

    def needed(self) -> set[str]:
        table, found = self.table.table, super().needed()
        found.add(local(table.metadata_location))
        if (now := table.current_snapshot()) is not None:
            found.add(local(now.manifest_list))
            found |= {local(manifest.manifest_path) for manifest in now.manifests(table.io)}
        return found

    def ever(self) -> set[str]:
        table, found = self.table.table, super().ever()
        for snapshot in table.snapshots():
            found.add(local(snapshot.manifest_list))
            found |= {local(manifest.manifest_path) for manifest in snapshot.manifests(table.io)}
        return found

    def recorded_columns(self) -> tuple[list[str], list[str]]:
        table = self.table.table
        text = table.properties.get("zonal.layout")
        return [] if text is None else list(Layout.from_json(text).columns), list(table.schema().column_names)


class Iceberg1(IcebergLedger):
    """An Iceberg table of version 1, which has no delete files."""

    version = 1


class Iceberg3(IcebergLedger):
    """An Iceberg table of version 3, which PyIceberg reads and others write."""

    version = 3
    ACTS = ("append", "positions", "positions", "recluster")

    def append(self) -> None:
        rows = self.fresh(self.rng.randrange(1, 60))
        writer = Writer(self.table.catalog)
        writer.append(rows, self.folder)
        writer.add_rows(rows.num_rows)
        writer.publish()


class PositionedLedger(IcebergLedger):
    """A table of version 2 of which another writer deletes rows by position during every run."""

    ACTS = (
        "append", "append", "positions", "positions", "positions", "positions_of_some", "positions_of_some",
        "merge_positions", "delete", "expire", "set_property", "add_column",
    )  # fmt: skip
    MEANWHILE = ("positions", "positions_of_some")

    def positions(self, most: int = 1) -> None:
        """Delete a few rows of some files of one partition by one delete file, whatever is deleted already."""
        tasks = sorted(self.table.table.scan().plan_files(), key=lambda task: task.file.file_path)
        if not tasks:
            return
        place = self.rng.choice(tasks).file
        there = [task for task in tasks if (task.file.spec_id, task.file.partition) == (place.spec_id, place.partition)]
        gone: dict[str, list[int]] = {}
        for task in self.rng.sample(there, min(most, len(there))):
            ids = pq.read_table(local(task.file.file_path), columns=["id"])["id"].to_pylist()
            left = sorted({*range(len(ids))} - self._deleted(task))
            at = sorted(self.rng.sample(left, min(self.rng.randrange(1, 5), len(left))))
            for position in at:
                self.rows.pop(ids[position], None)
            gone |= {task.file.file_path: at} if at else {}
        if gone:
            delete_positions(self.table.catalog, self.folder, gone, partition=place.partition, spec_id=place.spec_id)

    def positions_of_some(self) -> None:
        self.positions(3)

    def merge_positions(self) -> None:
        """Replace all delete files by one per partition with the same deletes, as a compaction of deletes does."""
        tasks = [task for task in self.table.table.scan().plan_files() if self._deleted(task)]
        writer = Writer(self.table.catalog)
        kept = [manifest for manifest in writer.manifests if manifest.content == ManifestContent.DATA]
        if len(kept) == len(writer.manifests):
            return
        writer.manifests = kept
        writer.publish()
        by_place: dict[tuple, dict[str, list[int]]] = {}
        for task in sorted(tasks, key=lambda task: task.file.file_path):
            of_place = by_place.setdefault((task.file.spec_id, task.file.partition), {})
            of_place[task.file.file_path] = sorted(self._deleted(task))
        for (spec_id, partition), positions in by_place.items():
            delete_positions(self.table.catalog, self.folder, positions, partition=partition, spec_id=spec_id)

    @staticmethod
    def _deleted(task) -> set[int]:
        deletes = [pq.read_table(local(file.file_path)).to_pylist() for file in task.delete_files]
        return {row["pos"] for rows in deletes for row in rows if row["file_path"] == task.file.file_path}
