"""Write results as JSON."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from zonal.layouts.layout import Layout, short_text

if TYPE_CHECKING:
    from zonal.advising.advice import Advice, Candidate
    from zonal.rewriting.dry_run import ClusteringPlan
    from zonal.rewriting.outcome import Clustering
    from zonal.verbs.clean import Cleaning
    from zonal.verbs.explain import Explanation
    from zonal.verbs.show import ColumnHealth

_LEFT_OUT = frozenset({"picture", "old_files_until"})
"""Fields that are drawn or printed only; their numbers are in other fields."""
_GROUPS = frozenset(
    {
        "AdvisedQueries",
        "AuditedQueries",
        "Basis",
        "Blame",
        "RewrittenFiles",
        "Circumstances",
        "Deletes",
        "EstimatedTime",
        "Excess",
        "FileSizes",
        "Judgment",
        "LookUps",
        "MeanReads",
        "PlannedFiles",
        "PlannedMerges",
        "PlannedReads",
        "QueryReads",
        "Run",
        "TableVersion",
    }
)
"""Classes of fields that belong together: in JSON they stand beside the other fields of their result.

Classes go by their names, of which the source has no two: to import them all would load every verb for the result of
one.
"""
_NAMES: Mapping[str, Mapping[str, str | None]] = {
    "Advice": {"name": "table", "location": None, "time": None},
    "Audit": {"name": "table", "time": "version_time"},
    "Clustering": {"id": "run"},
    "TableHealth": {"location": None},
}
"""The names of some fields in JSON, by result; None where they are left out."""
Result = TypeVar("Result", "Clustering", "ClusteringPlan")


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
    if (form := _FORMS.get(type(value).__name__)) is not None:
        return form(value)
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


def _column(column: "ColumnHealth") -> dict[str, object]:
    return {**_fields(column.depth), "verdict": column.verdict}


def _explanation(explanation: "Explanation") -> dict[str, object]:
    return {**_fields(explanation), "share_of_bytes": explanation.share_of_bytes}


def _cleaning(done: "Cleaning") -> dict[str, object]:
    return {**_fields(done), "bytes": done.bytes, "totals": _plain(done.totals)}


def _advice(advice: "Advice") -> dict[str, object]:
    """Write an advice; where values are hidden, without the cuts of its trees, which are values of the queries."""
    document = _fields(advice)
    if advice.workload.hidden:
        document["candidates"] = [_without_cuts(each) for each in advice.candidates]
        document["best"] = None if advice.best is None else _without_cuts(advice.best)
        document["summary"] = _fields(replace(advice.workload.summary, examples=()))
    return document


def _without_cuts(candidate: "Candidate") -> dict[str, object]:
    return {**_fields(candidate), "layout": None if candidate.layout is None else candidate.layout.short}


def _fields(value: object) -> dict[str, object]:
    """Write a result's fields, and those of its groups beside them."""
    assert is_dataclass(value)  # noqa: S101 - results are dataclasses
    names = _NAMES.get(type(value).__name__, {})
    document: dict[str, object] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if type(item).__name__ in _GROUPS:
            named = {names.get(key, key): each for key, each in _fields(item).items()}
            document |= {key: each for key, each in named.items() if key is not None}
        elif field.name not in _LEFT_OUT:
            document[field.name] = _plain(item)
    return document


_FORMS: Mapping[str, Callable[[Any], dict[str, object]]] = {
    "Advice": _advice,
    "Cleaning": _cleaning,
    "ColumnHealth": _column,
    "Explanation": _explanation,
}
"""How some results are written, by their classes' names; the others have their fields alone."""
