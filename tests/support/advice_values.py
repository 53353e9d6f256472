"""Advice made by hand, for tests of what is drawn of it."""

import json
import math

from support.grouped import changed, made
from zonal.advising.advice import Advice, Bloom, Candidate, Caution, Cost, Filtered, Prices, Reads, Regression
from zonal.layouts.layout import Layout
from zonal.workload.query import Summary

HIDDEN = "4929-1234"
CUTS = json.dumps({"leaves": 214, "points": [HIDDEN]}, separators=(",", ":"))
TREE = Layout("tree", ("ts", "payload_id"), tree=CUTS)
CURVE = Layout.parse("zorder(ts, payload_id)")
FREE = Cost(0, 0.0, 0.0, 0.0, 0.0, 0.0, None)
PAID = Cost(10**12, 7200.0, 0.10, 5.37, 2.5e12, 12.50, 0.4376)


def candidate(share, layout=None, *, kind="leave", label="leave as it is", cost=FREE, **other):
    reads = Reads(share, share, share / 2, share * 0.9, min(1.0, share * 1.1))
    return Candidate(
        kind=layout.kind if layout else kind,
        text=layout.short if layout else label,
        layout=layout,
        reads=reads,
        files=500,
        gain=1 - share / 0.378,
        cost=cost,
        **other,
    )


def advice(**changes):
    worse = (Regression("trace_id = 'abc'", "log.sql:12", 3, 0.031, 0.099),)
    best = candidate(0.0623, CURVE, cost=PAID, worse=worse, worse_count=1)
    leave = candidate(0.378)
    told = made(
        Advice,
        name="db.events",
        format="iceberg",
        location="/lake/events",
        time=None,
        version=7,
        files=240,
        bytes=10**12,
        rows=3_000_000,
        partitioning=("day(ts)",),
        layout="linear(ts)",
        target_file_bytes=CURVE.file_bytes,
        summary=Summary(1204, 1100, 800, 104, 300, 12, ("log.sql:9: can't read 'secret'",), "trino", 30.5),
        queries=212,
        held_out=106,
        per_day=400.0,
        prices=Prices(),
        sample_rows=60_000,
        now=leave.reads,
        partition_only=Reads(0.9, 0.9, None, 0.9, 0.9),
        filtered=(Filtered("ts", 0.93, 0.0, 5000, False, True, True), Filtered("note", 0.1, 0.1, None, False, False)),
        joins=("payload_id",),
        candidates=(best, candidate(0.07, TREE, cost=PAID), leave),
        best=best,
        verdict="cluster",
        reason="Cluster it: queries read 37.8% of the table now, and would read 6.2%.",
        blooms=(Bloom("trace_id", "Look-ups of single values.", 0.08, 0.5, 0.02),),
        warnings=(Caution("skew", "One value of 'status' has 40% of the rows.", "status"),),
        assumptions=("The log is one day.",),
    )
    return changed(told, **changes)


def left():
    leave = candidate(0.378)
    return advice(best=leave, candidates=(leave,), verdict="leave", reason="Leave it: nothing helps.")


def unknown():
    nothing = Reads(math.nan, math.nan, None, math.nan, math.nan)
    empty = Summary(0, 0, 0, 0, 0, 0)
    return advice(
        best=None, candidates=(), verdict="unknown", reason="No query asks for it.", now=nothing, summary=empty,
        partition_only=nothing, filtered=(), joins=(), blooms=(), warnings=(), queries=0, held_out=0, sample_rows=0,
    )  # fmt: skip


def hostile(name):
    """Put a name wherever a name of a table, a log or a query is."""
    layout = Layout("zorder", (name, "ts"))
    worse = (Regression(name, name, 1, 0.1, 0.2),)
    best = candidate(0.1, layout, cost=PAID, worse=worse, worse_count=1, note=name)
    return advice(
        name=name, partitioning=(name,), layout=name, best=best, candidates=(best, candidate(0.5, label=name)),
        reason=name, filtered=(Filtered(name, 1.0, 1.0, 3, True, True),), joins=(name,), assumptions=(name,),
        blooms=(Bloom(name, name, 0.5, 0.5, 0.1),), warnings=(Caution("skew", name, name),),
        summary=Summary(9, 8, 7, 1, 1, 0, (name,), name),
    )  # fmt: skip
