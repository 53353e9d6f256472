"""Write results as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import TypeVar

from zonal.advising.advice import Advice, AdvisedQueries, Basis, Candidate
from zonal.auditing.audit import (
    Audit,
    AuditedQueries,
    Blame,
    Circumstances,
    Excess,
    Judgment,
    MeanReads,
    QueryReads,
)
from zonal.layouts.layout import Layout, short_text
from zonal.rewriting.done import RewrittenFiles
from zonal.rewriting.dry_run import ClusteringPlan, EstimatedTime, PlannedFiles, PlannedMerges, PlannedReads
from zonal.rewriting.outcome import Clustering, LookUps, Run
from zonal.snapshot import TableVersion
from zonal.verbs.clean import Cleaning
from zonal.verbs.explain import Explanation
from zonal.verbs.show import ColumnHealth, Deletes, FileSizes, TableHealth

_LEFT_OUT = frozenset({"picture", "old_files_until"})
"""Fields that are drawn or printed only; their numbers are in other fields."""
_GROUPS = (
    AdvisedQueries,
    AuditedQueries,
    Basis,
    Blame,
    RewrittenFiles,
    Circumstances,
    Deletes,
    EstimatedTime,
    Excess,
    FileSizes,
    Judgment,
    LookUps,
    MeanReads,
    PlannedFiles,
    PlannedMerges,
    PlannedReads,
    QueryReads,
    Run,
    TableVersion,
)
"""Fields that belong together: in JSON they stand beside the other fields of their result."""
_NAMES: Mapping[type, Mapping[str, str | None]] = {
    Advice: {"name": "table", "location": None, "time": None},
    Audit: {"name": "table", "time": "version_time"},
    Clustering: {"id": "run"},
    TableHealth: {"location": None},
}
"""The names of some fields in JSON, by result; None where they are left out."""

Result = TypeVar("Result", Clustering, ClusteringPlan)


def to_json(result: object) -> str:
    """Write a result as one JSON object; layouts are texts that `cluster` takes, unknown numbers are null.

    Pictures are left out.
    """
    document = json.dumps(_plain(result), ensure_ascii=False, indent=2, allow_nan=False)
    return document.encode(errors="backslashreplace").decode()  # a lone surrogate in a name: as JSON escapes it


def without_cuts(result: Result) -> Result:
    """Return a result without the cuts of a tree, which are values of the queries."""
    return replace(result, layout=short_text(result.layout)) if result.layout else result


def _plain(value: object) -> object:
    if isinstance(value, ColumnHealth):
        return {**_fields(value.depth), "verdict": value.verdict}
    if isinstance(value, Explanation):
        return {**_fields(value), "share_of_bytes": value.share_of_bytes}
    if isinstance(value, Cleaning):
        return {**_fields(value), "bytes": value.bytes, "totals": _plain(value.totals)}
    if isinstance(value, Advice):
        return _advice(value)
    if isinstance(value, Layout):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


def _advice(advice: Advice) -> dict[str, object]:
    """Write an advice; where values are hidden, without the cuts of its trees, which are values of the queries."""
    document = _fields(advice)
    if advice.workload.hidden:
        document["candidates"] = [_without_cuts(each) for each in advice.candidates]
        document["best"] = None if advice.best is None else _without_cuts(advice.best)
        document["summary"] = _fields(replace(advice.workload.summary, examples=()))
    return document


def _without_cuts(candidate: Candidate) -> dict[str, object]:
    return {**_fields(candidate), "layout": None if candidate.layout is None else candidate.layout.short}


def _fields(value: object) -> dict[str, object]:
    """Write a result's fields, and those of its groups beside them."""
    assert is_dataclass(value)  # noqa: S101 - results are dataclasses
    names = _NAMES.get(type(value), {})
    document: dict[str, object] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if isinstance(item, _GROUPS):
            named = {names.get(key, key): each for key, each in _fields(item).items()}
            document |= {key: each for key, each in named.items() if key is not None}
        elif field.name not in _LEFT_OUT:
            document[field.name] = _plain(item)
    return document
