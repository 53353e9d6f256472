"""Tables as values, without files: snapshots to draw, and results of every verb around them."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa

from support.grouped import made
from zonal.auditing.audit import (
    Alert,
    Audit,
    Before,
    ColumnAudit,
    CommitAudit,
    FileAudit,
    Fresh,
    PartitionAudit,
    QueryAudit,
    QueryReads,
    Width,
)
from zonal.history.records import AuditRecord, RunRecord
from zonal.picture.picture import picture_of
from zonal.predicates.bind import bind
from zonal.rewriting.done import RewrittenFiles
from zonal.rewriting.learned import Predicted
from zonal.rewriting.outcome import Clustering, KeyDepth, LookUps, Run
from zonal.snapshot import Bounds, Files, Snapshot
from zonal.sql.where import parse_where
from zonal.verbs.explain import Explanation, Level, ReadFile
from zonal.verbs.show import health_of
from zonal.workload.query import Summary

NOON = datetime(2026, 11, 16, 12, tzinfo=timezone.utc)
START = 1_788_220_800_000_000
"""2026-09-01 in microseconds."""
MONTH = 30 * 86_400_000_000


def snapshot(bounds, schema, *, rows=1000, added_by=None, version=1, nulls=None, sizes=None, name="lake.telemetry"):
    """A version of a table whose files have these bounds: by column, a list of (lower, upper)."""
    count = len(next(iter(bounds.values())))
    known = {column: _bounds(pairs, schema.field(column).type, nulls) for column, pairs in bounds.items()}
    files = Files(
        paths=pa.array(
            [f"s3://lake/telemetry/part-{number:05d}.parquet" for number in range(count)], pa.large_string()
        ),
        sizes=np.full(count, 64 << 20, np.int64) if sizes is None else np.asarray(sizes, np.int64),
        rows=np.full(count, rows, np.int64),
        deleted=np.zeros(count, np.int64),
        delete_files=np.zeros(count, np.int64),
        added_by=np.full(count, version, np.int64) if added_by is None else np.asarray(added_by, np.int64),
        layout_ids=pa.nulls(count, pa.string()),
        partition=np.zeros(count, np.int64),
        partitions=("",),
        bounds=known,
    )
    return Snapshot(name, "delta", "s3://lake/telemetry", version, NOON, schema, (), files, {})


def _bounds(pairs, kind, nulls):
    kind = pa.large_binary() if pa.types.is_string(kind) else kind
    first = pa.int64() if pa.types.is_timestamp(kind) else kind
    lower, upper = (pa.array([_plain(pair[side]) for pair in pairs], first).cast(kind) for side in (0, 1))
    found = np.zeros(len(pairs), np.int64) if nulls is None else np.asarray(nulls, np.int64)
    return Bounds(lower, upper, found, np.zeros(len(pairs), np.int64))


def bound(text, schema):
    """A condition in the columns' own domain."""
    return bind(parse_where(text), schema)


def _plain(value):
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else value.item() if isinstance(value, np.generic) else value


def telemetry_schema(*names):
    ts, payload, device, region = names or ("ts", "payload_id", "device", "region")
    kinds = {ts: pa.timestamp("us", "UTC"), payload: pa.int64(), device: pa.string(), region: pa.string()}
    return pa.schema(kinds.items())


def by_arrival(count, schema, *, seed=0, version=11):
    """Files as they arrive: each a moment, and all of everything else."""
    random = np.random.default_rng(seed)
    ts, payload, device, region = schema.names
    devices = random.integers([0, 400], [40, 500], (count, 2)).tolist()
    starts = START + np.arange(count) * MONTH // count
    low, high = random.integers(0, 3_000, count), random.integers(97_000, 100_000, count)
    return snapshot(
        {
            ts: [(start, start + 2 * MONTH // count) for start in starts.tolist()],
            payload: list(zip(low.tolist(), high.tolist(), strict=True)),
            device: [(f"dev-{a:03d}", f"dev-{b:03d}") for a, b in devices],
            region: [("ap-south", "us-west")] * count,
        },
        schema,
        version=version,
        rows=100_000,
    )  # fmt: skip


def clustered(count, schema, *, seed=1, version=12, spoiled=0):
    """Files in a grid over the first two columns; the last `spoiled` ones are wide again, by another commit."""
    random = np.random.default_rng(seed)
    ts, payload, device, region = schema.names
    side = max(1, round(count**0.5))
    at = np.arange(count)
    column, row = at % side, at // side
    rows = -(-count // side)
    start = START + column * MONTH // side
    low = row * 100_000 // rows
    high = low + 100_000 // rows - 1
    wide = at >= count - spoiled
    low, high = np.where(wide, random.integers(0, 2000, count), low), np.where(wide, 99_000, high)
    devices = np.sort(random.integers(0, 500, (count, 2)), axis=1).tolist()
    regions = ["ap-south", "eu-north", "eu-west", "us-east", "us-west"]
    pairs = np.sort(random.integers(0, 5, (count, 2)), axis=1).tolist()
    return snapshot(
        {
            ts: [(each, each + MONTH // side) for each in start.tolist()],
            payload: list(zip(low.tolist(), high.tolist(), strict=True)),
            device: [(f"dev-{a:03d}", f"dev-{b:03d}") for a, b in devices],
            region: [(regions[a], regions[b]) for a, b in pairs],
        },
        schema,
        version=version,
        added_by=np.where(wide, version + 2, version),
        rows=100_000,
    )


def questions(schema, count, *, seed=3):
    """Conditions on moments and payloads, as texts with their bound form and weight."""
    random = np.random.default_rng(seed)
    ts, payload, device, _ = (f'"{name}"' for name in schema.names)
    found = []
    for number in range(count):
        day, width = random.integers(1, 28), random.integers(1, 3)
        value = int(random.integers(0, 100_000))
        text = [
            f"{payload} = {value}",
            f"{ts} >= TIMESTAMP '2026-09-{day:02d} 00:00:00' AND {ts} < TIMESTAMP '2026-09-{day + width:02d} 00:00:00'",
            f"{ts} >= TIMESTAMP '2026-09-{day:02d} 00:00:00' AND {payload} BETWEEN {value} AND {value + 4000}",
            f"{device} IN ('dev-{value % 500:03d}', 'dev-{value % 499:03d}')",
        ][number % 4]
        found.append((text, bound(text, schema), 1 / (number + 1)))
    return found


# --- Results ---------------------------------------------------------------------------------------------------------


def two_versions(files=400, asked=60, names=()):
    schema = telemetry_schema(*names)
    versions = [("before", by_arrival(files, schema)), ("after", clustered(files, schema))]
    return picture_of(versions, schema.names, questions(schema, asked))


def health(files=400, names=()):
    schema = telemetry_schema(*names)
    return health_of(clustered(files, schema), picture=True)


def explanation(files=400, names=()):
    schema = telemetry_schema(*names)
    table = clustered(files, schema)
    asked = questions(schema, 3)[2]
    picture = picture_of([("now", table)], schema.names, [asked])
    read = picture.questions[0].files[0]
    size = 64 << 20
    levels = (
        Level("partitions", 1, 1, files * size, files * size),
        Level("files", read, files, read * size, files * size),
        Level("row groups", read * 2, files * 8, read * size // 4, files * size),
    )
    paths = table.files.paths.to_pylist()
    listed = tuple(ReadFile(path, size, 100_000, "", 2, 8) for path in paths[:read])
    skipped = {schema.names[0]: 180, schema.names[1]: files - read - 180}
    unknown = ("upper(region) = 'EU': a function hides the column",)
    notes = ("Bloom filters were not asked.",)
    return Explanation(
        table.name, "delta", 12, asked[0], levels, skipped, unknown, listed, notes, picture=picture
    )  # fmt: skip


def clustering(files=400, asked=60, names=()):
    schema = telemetry_schema(*names)
    picture = two_versions(files, asked, names)
    size = files * (64 << 20)
    depths = (KeyDepth(schema.names[0], 2.0, 20.4), KeyDepth(schema.names[1], files * 0.98, files**0.5))
    shares = np.array([question.shares for question in picture.questions]).mean(axis=0) if asked else np.zeros(2)
    predicted = Predicted(asked, float(shares[0]), 0.118, float(shares[1])) if asked else None
    layout = f'zorder("{schema.names[0]}", "{schema.names[1]}")' if names else "zorder(ts, payload_id)"
    return Clustering(
        "lake.telemetry", "delta", layout, Run("run-1", (12,), 0, 83.2),
        RewrittenFiles(files * 100_000, files, size, files, size), LookUps(files, files, depths),
        predicted=predicted, picture=picture,
    )  # fmt: skip


def audit(files=400, asked=60, names=(), *, alert=True):
    schema = telemetry_schema(*names)
    table = clustered(files, schema, spoiled=files // 8, version=12)
    before = clustered(files, schema, version=12)
    picture = picture_of([("before version 14", before), ("now", table)], schema.names, questions(schema, asked))
    asked_of = tuple(_asked(question, number, files) for number, question in enumerate(picture.questions))
    worse = sum(each.reads.byte_share > each.before_share + 0.001 for each in asked_of)
    spoiled = CommitAudit(
        14, NOON - timedelta(hours=22), "compaction", "OPTIMIZE", "delta-rs", files // 8, (files // 8) * (64 << 20),
        0.58, 0.83, files // 8, (Width(schema.names[1], 0.97, 0.017), Width(schema.names[0], 0.05, 0.05)),
        f"version 14 (OPTIMIZE by delta-rs, 2026-11-15 14:02 UTC) widened {schema.names[1]} 57 times",
        ids=(14,),
    )  # fmt: skip
    others = [
        CommitAudit(
            number, NOON - timedelta(days=20 - number), "zonal" if number == 12 else "append", "WRITE", "zonal 0.4",
            files - files // 8, (files - files // 8) * (64 << 20), 0.42, 0.17, 500, (),
            f"version {number} (WRITE by zonal 0.4) added {files - files // 8} files",
        )
        for number in (12,)
    ]  # fmt: skip
    share = float(np.mean([each.reads.byte_share for each in asked_of])) if asked_of else 0.0
    text = "The ratio 0.412 is above the limit of 0.3."
    return made(
        Audit, name="lake.telemetry", format="delta", location="s3://lake/telemetry", version=14, time=NOON,
        audited=NOON, files=files, bytes=files * (64 << 20), rows=files * 100_000, layout="zorder(ts, payload_id)",
        partitioning=("day(ts)",), queries=asked, hindered=0.04, ratio=0.412 if alert else 0.061,
        byte_ratio=0.398, file_share=share, byte_share=share, partition_file_share=0.5, partition_byte_share=0.5,
        row_group_share=0.07, selectivity=0.0013, fresh=Fresh("zorder(ts, payload_id)", True, 0.031, 0.74),
        excess_share=0.63,
        columns=(
            ColumnAudit(schema.names[0], 0.71, files, 0.44, 0.44, True),
            ColumnAudit(schema.names[1], 0.5, files, 0.2, 0.2),
            ColumnAudit(schema.names[2], 0.25, files, 0.01, 0.01),
        ),
        asked=asked_of,
        worst_files=tuple(
            FileAudit(path, "", 64 << 20, 0.41, 0.39, 14) for path in table.files.paths.to_pylist()[-5:]
        ),
        worst_partitions=(
            PartitionAudit("day=2026-09-30", 40, 40 << 26, 0.6), PartitionAudit("day=2026-09-29", 4, 4 << 26, 0.1),
        ),
        commits=(spoiled, *others), culprits=(spoiled,), alerts=(Alert("ratio", 0.412, 0.3, text),) if alert else (),
        notes=("Predicted from a sample of 100,000 rows.",), summary=Summary(1200, 1180, 900, 20, 280, 12),
        seed=0, seconds=1.7, picture=picture, before=Before(12, 0.031, worse),
    )  # fmt: skip


def _asked(question, number, files):
    share, size = question.shares[-1], 64 << 20
    read, inside = question.files[-1], min(files, question.files[-1] * 3)
    return QueryAudit(
        question.text, f"queries.sql:{number + 1}", 3 + number % 5, question.weight / 5,
        QueryReads(read, read * size, inside, inside * size, share, share, 1 / 3, None, 2.0, 2.0 * size),
        share / 40, share * 0.4, question.shares[0],
        "a function hides the column" if number == 5 else "", "Compare the column itself." if number == 5 else "",
    )  # fmt: skip


def past_audits(count=20):
    """Audits of the days before: well after a rewrite, then worse."""
    found = []
    for number in range(count):
        days = count - number
        ratio = 0.36 + 0.004 * number if number < count // 3 else 0.05 + 0.002 * number
        alerts = ("The ratio is above the limit of 0.3.",) if ratio > 0.3 else ()
        found.append(
            AuditRecord(
                "lake.telemetry", "s3://lake/telemetry", "delta", number, NOON - timedelta(days=days), 60, ratio, ratio,
                ratio / 2, ratio / 2, 0.5, 0.001, 0.03, ratio / 3, alerts, "", "zorder(ts, payload_id)",
            )
        )  # fmt: skip
    return tuple(found)


def past_runs(count=20):
    finished = NOON - timedelta(days=count - count // 3, hours=5)
    return (
        RunRecord(
            "lake.telemetry", "s3://lake/telemetry", "delta", 12, finished, "run-1", "zorder(ts, payload_id)",
            40_000_000, 400, 400 << 26, 400, 400 << 26, 60, 0.39, 0.05, 0.052, 83.2,
        ),
    )  # fmt: skip


def without_picture(result):
    return replace(result, picture=None)
