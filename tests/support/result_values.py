"""One result of each verb made by hand, with one name wherever a name can stand."""

from dataclasses import replace
from datetime import datetime, timezone

import numpy as np

from support.advice_values import hostile
from support.grouped import made
from zonal.auditing.audit import (
    Alert,
    Audit,
    ColumnAudit,
    CommitAudit,
    FileAudit,
    Fresh,
    PartitionAudit,
    QueryAudit,
    QueryReads,
    Width,
)
from zonal.layouts.layout import Layout
from zonal.picture.picture import Axis, Drawing, DrawnQuery, Picture
from zonal.rewriting.appended import Appended, AppendPlan
from zonal.rewriting.done import RewrittenFiles
from zonal.rewriting.dry_run import ClusteringPlan, EstimatedTime, PlannedFiles, PlannedReads
from zonal.rewriting.learned import Predicted
from zonal.rewriting.outcome import Clustering, KeyDepth, LookUps, Run
from zonal.skipping.depth import Depth
from zonal.snapshot import TableVersion
from zonal.upkeep.condition import Condition
from zonal.verbs.explain import Explanation, Level
from zonal.verbs.show import ColumnHealth, Deletes, FileSizes, TableHealth
from zonal.workload.query import Summary

WHEN = datetime(2026, 3, 4, tzinfo=timezone.utc)


def drawing(label="now", files=5, names=("x", "y"), seed=0):
    draw = np.random.default_rng(seed)
    ends = {name: np.sort(draw.integers(0, 65536, (2, files)), axis=0).astype(np.uint16) for name in names}
    return Drawing(
        label, 3, files, 1000, np.arange(files), {name: both[0] for name, both in ends.items()},
        {name: both[1] for name, both in ends.items()}, np.zeros(files, np.int64), (),
    )  # fmt: skip


def picture(name="x", files=5, versions=1):
    axes = (
        Axis(name, "text", True, ((0, name), (65535, name))),
        Axis("y", "number", False, ((0, "0"), (65535, "9"))),
    )
    drawings = tuple(drawing(name if name != "x" else f"v{n}", files, (name, "y"), n) for n in range(versions))
    reads = tuple(np.arange(files) < 2 for _ in drawings)
    box = {name: ((100, 200), (300, 300))}
    asked = DrawnQuery(f"{name} = 1", 0.7, box, (2,) * versions, (0.25,) * versions, reads)
    return Picture(axes, drawings, (asked,))


def health(name="plain"):
    depth = Depth(name, 4, 2.5, 3.5, 0, {2: 4}, 1.5, 17)
    table = TableVersion(name, "delta", name, 7, WHEN, 5, 10**6, 4000, str(Layout("zorder", (name, "y"))), (name,))
    return TableHealth(
        table, FileSizes(1, 2, 3), Deletes(2, None), 2, 3, (ColumnHealth(depth, 5),), 9, (name,), (name,),
        Condition(0.75, 0.0, 0.25, 3, 2, 1.5, ("4 files",), ("2 files",)), picture(name),
    )  # fmt: skip


def explanation(name="plain"):
    levels = (Level("partitions", 1, 2, 500, 1000), Level("files", 2, 8, 250, 1000))
    return Explanation(name, "iceberg", 9, name, levels, {name: 6}, (name,), (), (name,), picture(name))


def clustering(name="plain"):
    return Clustering(
        name, "delta", str(Layout("zorder", (name, "y"))), Run("run", (4, 5), 1, 12.5, 3),
        RewrittenFiles(4000, 8, 10**6, 5, 9 * 10**5, 6, 1_100_000, 2**20, name),
        LookUps(8, 5, (KeyDepth(name, 8.0, 2.0),)),
        Predicted(3, 0.9, 0.3, 0.25), name, picture(name, versions=2),
    )  # fmt: skip


def appended(name="plain"):
    return Appended(name, "delta", str(Layout("zorder", (name, "y"))), "run", 5, 4000, 8, 10**6, 2.5, note=name)


def append_plan(name="plain"):
    return AppendPlan(name, "delta", str(Layout("zorder", (name, "y"))), 4000, 3, 8, 10**6, 2**20)


def plan(name="plain"):
    layout = str(Layout("zorder", (name, "y")))
    change, reads = PlannedFiles(8, 10**6, 4000, 1, 1, 5, 9 * 10**5), PlannedReads(0, 0.9, 0.3)
    return ClusteringPlan(name, "delta", layout, change, EstimatedTime(20.0), reads, note=name)


def audit(name="plain"):
    reads = QueryReads(4, 500, 8, 1000, 0.5, 0.5, 0.5, None, 1.0, 99.0)
    query = QueryAudit(name, name, 3, 0.5, reads, 0.01, 0.1, 0.02, name, name)
    commit = CommitAudit(
        12,
        WHEN,
        "compaction",
        name,
        name,
        4,
        500,
        0.5,
        0.9,
        3,
        (Width(name, 0.9, 0.1),),
        f"{name} widened it 9 times",
        ids=(12,),
    )
    return made(
        Audit, name=name, format="delta", location=name, version=7, time=WHEN, audited=WHEN, files=8, bytes=1000,
        rows=4000, layout=str(Layout("zorder", (name, "y"))), partitioning=(name,), queries=1, hindered=0.25,
        ratio=0.45, byte_ratio=0.44, file_share=0.5, byte_share=0.52, partition_file_share=1.0,
        partition_byte_share=1.0, row_group_share=None, selectivity=0.01, fresh=Fresh(name, True, 0.1, 0.8),
        excess_share=0.41, columns=(ColumnAudit(name, 0.6, 8, 0.4, 0.38), ColumnAudit(name, 0.1, 8, 0.1, 0.1, True)),
        asked=(query,), worst_files=(FileAudit(name, name, 100, 0.9, 0.8, 12),),
        worst_partitions=(PartitionAudit(name, 4, 500, 0.7),), commits=(commit,), culprits=(commit,),
        alerts=(Alert("ratio", 0.45, 0.3, name),), notes=(name,), summary=Summary(9, 8, 7, 1, 1, 0, (name,)), seed=0,
        seconds=1.0, picture=picture(name),
    )  # fmt: skip


def hostile_advice(name="plain"):
    return replace(hostile(name), picture=picture(name))
