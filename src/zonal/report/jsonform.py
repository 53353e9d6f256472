"""Results as JSON."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime

from zonal.verbs.explain import Explanation
from zonal.verbs.show import ColumnHealth


def to_json(result: object) -> str:
    """Write a result as one JSON object."""
    return json.dumps(_plain(result), ensure_ascii=False, indent=2)


def _plain(value: object) -> object:
    if isinstance(value, ColumnHealth):
        return {**_fields(value.depth), "verdict": value.verdict}
    if isinstance(value, Explanation):
        return {**_fields(value), "share_of_bytes": value.share_of_bytes}
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _fields(value: object) -> dict[str, object]:
    assert is_dataclass(value)  # noqa: S101 - results are dataclasses
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
