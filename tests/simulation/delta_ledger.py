"""Delta tables of a schedule: other writers by deltalake, and by hand where deletion vectors are needed."""

import json
import shutil
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from simulation.ledgers import Ledger
from support.cluster_tables import Delta, parts_of
from support.delta_rewrites import data_file, stored_vector
from support.delta_tables import LogWriter, features, field, metadata
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Vector
from zonal.storage import Storage
from zonal.tables.delta.vectors import vector_location
from zonal.worker.read.deletes import read_vector

RETENTION = {"delta.logRetentionDuration": "interval 0 seconds"}


class DeltaLedger(Ledger):
    """A Delta table among deltalake's writers."""

    ACTS = (
        "append", "append", "append", "delete", "delete", "update", "overwrite", "replace_part", "compact", "zorder",
        "add_column", "set_property", "checkpoint", "clean_log", "vacuum", "restore", "recluster", "recreate",
        "recreate_on_files", "rename_key", "drop_key",
    )  # fmt: skip

    def make(self) -> "DeltaLedger":
        self.named_files, self.known_version = 0, -1
        self.table = Delta(self.folder)
        properties = RETENTION if self.rng.random() < 0.3 else None
        self._make(self.rng.randrange(60, 400), self.rng.randrange(1, 6), self.rng.choice([[], ["p"]]), properties)
        self.settled()
        return self

    def _make(self, rows: int, parts: int, keys: list[str], properties: dict[str, str] | None = None) -> None:
        self.table.make(parts_of(self.fresh(rows), parts), keys, properties)
        self.known_version = -1
        self.rename_files()

    def act(self, name: str) -> None:
        super().act(name)
        self.rename_files()

    def rename_files(self) -> None:
        """Give files that deltalake named at random, and puts in any order, the same ones in every replay."""
        log = self.table.root / "_delta_log"
        commits = {int(path.stem): path for path in log.glob("*.json") if path.stem.isdecimal()}
        for version in sorted(number for number in commits if number > self.known_version):
            actions = [json.loads(line) for line in commits[version].read_text().split("\n") if line]
            if any("zonal" in json.dumps(action["commitInfo"]) for action in actions if "commitInfo" in action):
                continue  # its names are the same in every replay, and it looks whether anybody replaces its version
            adds = [action["add"] for action in actions if "add" in action and "zonal-" not in action["add"]["path"]]
            for add in sorted(adds, key=_content):
                folder, _, name = unquote(add["path"]).rpartition("/")
                if name.startswith("part-") and len(name) > 30:
                    self.named_files += 1
                    new = f"{folder}/part-{self.named_files:05d}.parquet".lstrip("/")
                    (self.table.root / unquote(add["path"])).rename(self.table.root / new)
                    add["path"] = quote(new, safe="/=")
            actions.sort(key=_place)
            commits[version].write_text("".join(json.dumps(action) + "\n" for action in actions))
        self.known_version = max([self.known_version, *commits])

    # --- acts ---

    def write(self, rows: pa.Table, mode: str = "append", schema: str | None = "merge", **more) -> None:
        write_deltalake(self.table.root, rows, mode=mode, schema_mode=schema, **more)

    def append(self) -> None:
        self.write(self.fresh(self.rng.randrange(1, 60)))

    def delete(self) -> None:
        low, high = self.some()
        self.table.table.delete(f"id >= {low} and id < {high}")
        self.forget(low, high)

    def update(self) -> None:
        low, high = self.some()
        if "x" in self.names:
            name = self.names["x"]
            self.table.table.update({name: f"{name} + 1"}, predicate=f"id >= {low} and id < {high}")
        self.rows = {n: (r[0], r[1] + 1, *r[2:]) if low <= n < high else r for n, r in self.rows.items()}

    def overwrite(self) -> None:
        self.rows = {}
        self.write(self.fresh(50), "overwrite", "overwrite")

    def replace_part(self) -> None:
        self.rows = {n: row for n, row in self.rows.items() if row[4] != "a"}
        self.write(self.fresh(30, "a"), "overwrite", predicate="p = 'a'")

    def compact(self) -> None:
        self.table.table.optimize.compact(max_concurrent_tasks=1)

    def zorder(self) -> None:
        self.table.table.optimize.z_order(self.known(["y"]), max_concurrent_tasks=1)

    def add_column(self) -> None:
        self.extra += 1
        rows = self.fresh(10)
        self.write(rows.append_column(f"e{self.extra}", rows["id"]))

    def set_property(self) -> None:
        days = self.rng.randrange(1, 99)
        self.table.table.alter.set_table_properties({"delta.deletedFileRetentionDuration": f"interval {days} days"})

    def checkpoint(self) -> None:
        self.table.table.create_checkpoint()

    def clean_log(self) -> None:
        self.table.table.create_checkpoint()
        self.table.table.cleanup_metadata()

    def vacuum(self, *, full: bool = False) -> None:
        """Remove files that the log says are gone; the full one also those that it doesn't know: of running jobs."""
        self.table.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=full)

    def restore(self) -> None:
        before, version = dict(self.rows), self.table.version()
        self.write(self.fresh(5))
        self.rename_files()
        DeltaTable(self.table.root).restore(version)
        self.rows = before

    def recreate(self) -> None:
        """Drop the table with all its files, and make another one in its place."""
        shutil.rmtree(self.table.root)
        self.forget_table()
        self._make(80, self.rng.randrange(1, 9), [])

    def recreate_on_files(self) -> None:
        """Drop the table but not its data, as a drop of an external table does, and make another one there."""
        shutil.rmtree(self.table.root / "_delta_log")
        self.forget_table()
        self._make(80, self.rng.randrange(1, 9), [])

    def rename_key(self) -> None:
        """Write all rows anew under another name: without column mapping a column can't be renamed."""
        if (name := self.key()) is not None:
            self.names[name] = f"{name}{len(self.done)}"
            self.write(self.stored(), "overwrite", "overwrite")

    def drop_key(self) -> None:
        if (name := self.key()) is not None:
            del self.names[name]
            self.write(self.stored(), "overwrite", "overwrite")

    # --- what is asked afterwards ---

    def read(self) -> pa.Table:
        return pa.table(self.table.table.to_pyarrow_table())

    def live(self) -> dict[str, int]:
        adds = pa.table(self.table.table.get_add_actions(flatten=True)).to_pylist()
        return {str(self.table.root / unquote(add["path"])): add["size_bytes"] for add in adds}

    def recorded_columns(self) -> tuple[list[str], list[str]]:
        found = self.table.table
        text = found.metadata().configuration.get("zonal.layout")
        layout = [] if text is None else list(Layout.from_json(text).columns)
        return layout, [member.name for member in found.schema().fields]


def _content(add: dict) -> tuple:
    stats = json.loads(add.get("stats") or "{}")
    return (
        sorted(map(str, (add.get("partitionValues") or {}).items())),
        stats.get("numRecords"),
        str((stats.get("minValues") or {}).get("id")),
    )


def _place(action: dict) -> tuple[int, str]:
    kind = next(iter(action))
    return (1 + (kind == "add"), action[kind]["path"]) if kind in ("add", "remove") else (0, "")


class VectorLedger(Ledger):
    """A Delta table with deletion vectors; its log is written by hand, since deltalake can't."""

    ACTS = ("append", "mark", "mark", "mark", "drop_file", "recluster", "set_property", "recreate")
    ENABLED = 0.8
    """How often the table takes new deletion vectors of all writers."""

    def make(self) -> "VectorLedger":
        self.table, self.vectors, self.made = Delta(self.folder), {}, 0
        self._make(300, 4)
        self.settled()
        return self

    def _make(self, rows: int, parts: int) -> None:
        self.hand = LogWriter(self.table.root)
        self.made += 1
        kinds = {"id": "long", "x": "long", "y": "double", "s": "string", "p": "string"}
        named = enumerate(parts_of(self.fresh(rows), parts))
        adds = [data_file(self.hand, f"{self.made}-{number}.parquet", part) for number, part in named]
        enabled = {"delta.enableDeletionVectors": "true"} if self.rng.random() < self.ENABLED else {}
        meta = metadata(*(field(name, kind) for name, kind in kinds.items()), configuration=enabled)
        meta["metaData"]["id"] = f"{self.made:08d}-0000-0000-0000-000000000000"
        self.hand.commit(features("deletionVectors"), meta, adds[0], version=0)
        for add in adds[1:]:
            self.hand.commit(add)

    def append(self) -> None:
        name = f"more-{self.next}.parquet"
        self.hand.commit(data_file(self.hand, name, self.fresh(20)), version=self.replayed()[2])

    def mark(self, *, whole: bool = False) -> None:
        """Delete some rows of a file, or all of them with the file."""
        live, _, version = self.replayed()
        if not live:
            return
        body = live[self.rng.choice(sorted(live, key=str))]
        ids = pq.read_table(self.table.root / unquote(body["path"]), columns=["id"])["id"].to_pylist()
        old = self.deleted(body, len(ids))
        new = set(range(len(ids)))
        if not whole:
            new = old | set(self.rng.sample(range(len(ids)), min(len(ids), self.rng.randrange(1, 9))))
        gone = {"path": body["path"], "dataChange": True, "deletionTimestamp": 0}
        gone |= {"deletionVector": body["deletionVector"]} if body.get("deletionVector") else {}
        adds = []
        if not whole:
            vector = stored_vector(self.hand, sorted(new))
            self.vectors[vector["pathOrInlineDv"]] = new
            adds = [{"add": {**body, "deletionVector": vector}}]
        self.hand.commit({"remove": gone}, *adds, version=version)
        for position in new - old:
            self.rows.pop(ids[position], None)

    def deleted(self, body: dict, rows: int) -> set[int]:
        """Positions in a file's vector: one of the ledger's own, or one that a run of zonal wrote."""
        if not (descriptor := body.get("deletionVector")):
            return set()
        if (known := self.vectors.get(descriptor["pathOrInlineDv"])) is not None:
            return known
        where = vector_location(descriptor, str(self.table.root), str)
        vector = Vector(descriptor["cardinality"], where, descriptor["offset"], descriptor["sizeInBytes"] + 8)
        return set(read_vector(vector, Storage(str(self.table.root), {}), rows).tolist())

    def drop_file(self) -> None:
        self.mark(whole=True)

    def set_property(self) -> None:
        _, meta, version = self.replayed()
        meta["configuration"]["delta.x"] = str(self.rng.randrange(99))
        self.hand.commit({"metaData": meta}, version=version)

    def recreate(self) -> None:
        shutil.rmtree(self.table.root)
        self.forget_table()
        self._make(80, self.rng.randrange(1, 9))

    # --- what is asked afterwards ---

    def replayed(self) -> tuple[dict[tuple[str, str | None], dict], dict, int]:
        """Replay the log: live files, the newest metadata, the next version."""
        live, meta, version = {}, {}, -1
        for path in sorted((self.table.root / "_delta_log").glob("*.json")):
            version = int(path.stem)
            for line in filter(None, path.read_text().split("\n")):
                ((kind, body),) = json.loads(line).items()
                if kind in ("add", "remove"):
                    key = (body["path"], (body.get("deletionVector") or {}).get("pathOrInlineDv"))
                    live.pop(key, None)
                    live |= {key: body} if kind == "add" else {}
                meta = body if kind == "metaData" else meta
        return live, meta, version + 1

    def read(self) -> pa.Table:
        found = QueryBuilder().register("t", DeltaTable(self.table.root)).execute("select * from t")
        return pa.table(found.read_all() if hasattr(found, "read_all") else found)

    def live(self) -> dict[str, int]:
        return {str(self.table.root / unquote(body["path"])): body["size"] for body in self.replayed()[0].values()}

    def recorded_columns(self) -> tuple[list[str], list[str]]:
        meta = self.replayed()[1]
        text = meta["configuration"].get("zonal.layout")
        layout = [] if text is None else list(Layout.from_json(text).columns)
        return layout, [member["name"] for member in json.loads(meta["schemaString"])["fields"]]


class MarkedLedger(VectorLedger):
    """A Delta table of which another writer deletes rows during every run; more deletes follow than anything else."""

    ACTS = ("append", "mark", "mark", "mark", "mark", "mark", "drop_file", "set_property")
    MEANWHILE = ("mark", "mark")
    ENABLED = 1.0
