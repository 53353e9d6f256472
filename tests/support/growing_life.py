"""The life of a table that grows: other writers' acts, a ledger of its rows, and the laws that each run must hold."""

import json
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from support.cluster_tables import Delta, Iceberg, never
from support.delta_rewrites import data_file, stored_vector
from support.delta_tables import LogWriter, features, metadata, stats
from support.delta_tables import field as column
from support.iceberg_rewriting import delete_positions
from zonal.layouts.layout import Layout
from zonal.plan.run import RUN_FOLDER
from zonal.tables.registry import read_snapshot, table_of
from zonal.upkeep.runs import runs_of

KEYS = ("ts", "x")
STEP = 1000
"""Time between two appends."""
IDS = 10**6
"""Ids that one append may use."""
AMPLIFICATION = 3.0
"""The default bound on bytes rewritten per byte that arrived."""
SLACK, TOGETHER = 0.5, 0.25
"""Files' worth by which a run may let look-ups of one key column read more, and those of all together."""
GOOD = 0.75
"""Share of the target size from which a file is no small one."""
FIRST = 12
"""Appends that are there when a life begins."""
LATE = (0.1, 0.2)
"""Shares of an append's rows that are late, at least and at most."""


@dataclass(frozen=True)
class Arrivals:
    """What arrives with each append."""

    count: int = 300
    late: tuple = LATE
    latest: int = 10**6
    """Appends by which a row is late at most."""
    day: int | None = None
    """Appends of a day, where the table is partitioned by days."""

    def rows(self, step):
        draw = np.random.default_rng(step)
        ts = step * STEP + draw.integers(0, STEP, self.count)
        tardy = draw.random(self.count) < draw.uniform(*self.late)
        ts[tardy] = draw.integers(max(step - self.latest, 0) * STEP, (step + 1) * STEP, tardy.sum())
        columns = {"id": step * IDS + np.arange(self.count), "ts": ts, "x": draw.integers(0, 5000, self.count)}
        return pa.table(columns | ({} if self.day is None else {"day": ts // (STEP * self.day)}))

    @property
    def partitioning(self):
        return [] if self.day is None else ["day"]


@dataclass
class Life:
    """A table, the rows that it must have, and what arrived and was rewritten so far."""

    folder: object
    layout: Layout
    arrivals: Arrivals = Arrivals()
    table: object = None
    ledger: pa.Table = None
    arrived: int = 0
    rewritten: int = 0
    runs: int = 0
    """Runs that wrote something."""
    sizes: dict = field(default_factory=dict)
    """Size of each live file that was seen last."""
    seen: set = field(default_factory=set)
    """Files that a version had."""
    touched: int = 0
    """Files of a good size that were clustered and rewritten all the same."""

    def begin(self, first=FIRST):
        """Make the table with the rows of the first appends, and cluster it."""
        self.ledger = pa.concat_tables([self.arrivals.rows(step) for step in range(first)])
        self.make(self.ledger)
        self.look()
        self.table.cluster(layout=self.layout)
        self.look()
        return self

    # --- what others do ---

    def live(self, step):
        """Let a day or an hour pass: rows arrive, some are deleted or changed, and a run keeps the table."""
        count = self.arrivals.count
        self.arrive(step)
        if step % 9 == 0:
            self.delete((step - 5) * IDS, (step - 5) * IDS + count // 3)
        if step % 13 == 0:
            self.update((step - 4) * IDS, (step - 4) * IDS + count // 5)
        return self.keep()

    def arrive(self, step):
        more = self.arrivals.rows(step)
        self.append(more, step)
        self.ledger = pa.concat_tables([self.ledger, more])

    def delete(self, low, high):
        self.remove(low, high)
        self.ledger = self.ledger.filter(pc.invert(self._within(low, high)))

    def update(self, low, high):
        mine = self._within(low, high)
        changed = self.ledger.filter(mine)
        at = changed.column_names.index("x")
        changed = changed.set_column(at, "x", pc.add(changed["x"], 7))
        if changed.num_rows:
            self.replace(low, high, changed)
        self.ledger = pa.concat_tables([self.ledger.filter(pc.invert(mine)), changed])

    def _within(self, low, high):
        return pc.and_(pc.greater_equal(self.ledger["id"], low), pc.less(self.ledger["id"], high))

    def strays(self):
        """Files that runs wrote and no version had."""
        written = self.table.root.rglob("zonal-*/**/*.parquet")
        return {str(path) for path in written} - {path.removeprefix("file://") for path in self.seen}

    # --- what a run does, and its laws ---

    def now(self):
        return read_snapshot(table_of(self.table.name, **self.table.options))

    def look(self):
        """Read the table, and add what is new to what arrived or to what was rewritten."""
        snapshot = self.now()
        found = dict(zip(snapshot.files.paths.to_pylist(), snapshot.files.sizes.tolist(), strict=True))
        for path in found.keys() - self.sizes.keys():
            if RUN_FOLDER.search(path):
                self.rewritten += found[path]
            else:
                self.arrived += found[path]
        self.sizes = found
        self.seen |= found.keys()
        return snapshot

    def keep(self, *, alone=True, **asked):
        """Run `cluster`, and hold it to its laws; some hold only where it is `alone`."""
        before = self.look()
        done = self.table.cluster(**asked)
        after = self.look()
        if alone and not done.run.versions:
            assert after.version == before.version, "nothing was due, and nothing was written"
            return done
        self.runs += 1
        assert same_rows(self.rows(), self.ledger), "the table has the rows of the ledger, no more and no fewer"
        if alone:
            assert self.rewritten <= AMPLIFICATION * self.arrived, "bytes rewritten per byte that arrived are bounded"
            self._reads_no_more(before, after)
            self._leaves_alone(before)
            self.rests()
        return done

    def rests(self):
        """A second run has nothing to do, and starts no runner."""
        version = self.now().version
        assert not self.table.cluster(runner=never).run.versions
        assert self.now().version == version

    def _reads_no_more(self, before, after):
        """Count rows, not bytes: how well the rows of a file compress is no matter of overlap.

        Where other writers left more than half of the table without an order, it is clustered anew.
        """
        if before.files.sizes[runs_of(before, self.layout).in_layout].sum() < before.files.sizes.sum() / 2:
            return
        file = self.layout.file_bytes / before.files.sizes.sum() * before.files.rows.sum()
        then, now = lookups(before, self.ledger), lookups(after, self.ledger)
        more = {name: (now[name] - then[name]) / file for name in self.layout.columns}
        assert max(more.values()) <= SLACK, f"a look-up reads more than before, in files' worth: {more}"
        assert len(more) < 2 or sum(more.values()) <= TOGETHER, (
            f"look-ups read more than before, in files' worth: {more}"
        )

    def _leaves_alone(self, before):
        """No file of a good size is rewritten that is clustered, whole, and shares no values with what it joins."""
        runs, files = runs_of(before, self.layout), before.files
        gone = np.array([path not in self.sizes for path in files.paths.to_pylist()])
        good = files.sizes >= GOOD * self.layout.file_bytes
        settled = np.flatnonzero(gone & runs.in_layout & ~runs.heavy & good)
        self.touched += len(settled)
        for file in settled:
            others = gone & (files.partition == files.partition[file]) & (np.arange(len(files)) != file)
            assert any((meets(before, name, file) & others).any() for name in self.layout.columns), "for nothing"


def same_rows(found, ledger):
    """Tell whether both have the same rows equally often."""
    found = found.select(ledger.column_names)
    order = [(name, "ascending") for name in ledger.column_names]
    one, other = (each.sort_by(order).combine_chunks().cast(ledger.schema) for each in (found, ledger))
    return one.equals(other)


def edges(snapshot, name):
    bounds = snapshot.files.bounds[name]
    return (np.array(each.to_pylist(), np.float64) for each in (bounds.lower, bounds.upper))


def meets(snapshot, name, file):
    """Tell which files share values of a column with a file."""
    low, high = edges(snapshot, name)
    return (low <= high[file]) & (high >= low[file])


def lookups(snapshot, ledger, probes=60):
    """Return the mean rows in files that look-ups of one value can't skip, for each key column."""
    read = {}
    for name in KEYS:
        low, high = edges(snapshot, name)
        values = np.quantile(ledger[name].to_numpy(), np.linspace(0.01, 0.99, probes), method="nearest")[:, None]
        read[name] = float((((low <= values) & (high >= values)) @ snapshot.files.rows).mean())
    return read


class CopyOnWrite(Life):
    """A Delta table; deltalake rewrites files for deletes and updates, after which these are in no layout."""

    def make(self, rows):
        self.table = Delta(self.folder).make([rows], self.arrivals.partitioning)

    def append(self, rows, step):  # noqa: ARG002
        self.table.append(rows)

    def remove(self, low, high):
        self.table.table.delete(f"id >= {low} AND id < {high}")

    def replace(self, low, high, changed):  # noqa: ARG002
        self.table.table.update({"x": "x + 7"}, predicate=f"id >= {low} AND id < {high}")

    def rows(self):
        return self.table.rows()


class Vectors(Life):
    """A Delta table with deletion vectors, which mark rows as deleted; updates append rows. Its log is handwritten."""

    def make(self, rows):
        self.table, self.hand, self.marked = Delta(self.folder), LogWriter(self.folder / "t"), {}
        kinds = [column(name, "long") for name in rows.column_names]
        self.hand.commit(features("deletionVectors"), metadata(*kinds), self._file("first", rows))

    def _file(self, name, rows):
        least, most = ({each: pc.min_max(rows[each])[end].as_py() for each in KEYS} for end in ("min", "max"))
        known = stats(rows.num_rows, least | {"id": None}, most | {"id": None})
        made = data_file(self.hand, f"{name}.parquet", rows)
        made["add"]["stats"] = json.dumps(known)
        return made

    def append(self, rows, step):
        self.hand.commit(self._file(f"part-{step}", rows), version=self.now().version + 1)

    def remove(self, low, high, *adds):
        snapshot, actions = self.now(), []
        for body in live_adds(self.hand.log).values():
            ids = pq.read_table(self.hand.path / unquote(body["path"]), columns=["id"])["id"].to_numpy()
            old = self.marked.get((body.get("deletionVector") or {}).get("pathOrInlineDv"), set())
            new = old | set(np.flatnonzero((ids >= low) & (ids < high)).tolist())
            if new == old:
                continue
            gone = {name: body[name] for name in ("path", "deletionVector") if body.get(name)}
            actions.append({"remove": gone | {"dataChange": True, "deletionTimestamp": 0}})
            vector = stored_vector(self.hand, sorted(new))
            self.marked[vector["pathOrInlineDv"]] = new
            actions.append({"add": {**body, "deletionVector": vector, "dataChange": True}})
        if actions or adds:
            self.hand.commit(*actions, *adds, version=snapshot.version + 1)

    def replace(self, low, high, changed):
        self.remove(low, high, self._file(f"changed-{self.now().version}", changed))

    def rows(self):
        found = QueryBuilder().register("t", DeltaTable(self.table.root)).execute("select * from t")
        return pa.table(found.read_all() if hasattr(found, "read_all") else found)


def live_adds(log):
    """Replay a log without checkpoints: the live `add` of each path."""
    live = {}
    for path in sorted(log.glob("*.json")):
        for line in filter(None, path.read_text().split("\n")):
            ((kind, body),) = json.loads(line).items()
            if kind == "remove":
                live.pop(body["path"], None)
            elif kind == "add":
                live[body["path"]] = body
    return live


class Snapshots(Life):
    """An Iceberg table: deletes are copies on write, or positions; old snapshots expire."""

    KEPT = 8
    """Snapshots that are left when others expire: what came before, the table can't tell any more."""

    def make(self, rows):
        self.table = Iceberg(self.folder).make([rows], self.arrivals.partitioning)

    def append(self, rows, step):
        self.table.append(rows)
        if step % 10 == 0:
            self.expire()

    def expire(self):
        table = self.table.table
        old = [entry.snapshot_id for entry in table.snapshots()[: -self.KEPT]]
        if old:
            table.maintenance.expire_snapshots().by_ids(old).commit()

    def remove(self, low, high):
        if low // IDS % 2:
            self.table.table.delete(f"id >= {low} AND id < {high}")
        else:
            self._positions(low, high)

    def _positions(self, low, high):
        table, places = self.table.table, {}
        for task in table.scan().plan_files():
            path = task.file.file_path
            ids = pq.read_table(path.removeprefix("file://"), columns=["id"])["id"].to_numpy()
            found = np.flatnonzero((ids >= low) & (ids < high)).tolist()
            places |= {path: found} if found else {}
        if places:
            delete_positions(self.table.catalog, self.folder, places)

    def replace(self, low, high, changed):
        self.table.table.overwrite(changed, f"id >= {low} AND id < {high}")

    def rows(self):
        return self.table.rows()
