"""Refuse arguments of `cluster` with a wrong type before any work is done."""

import os
from collections.abc import Callable, Mapping, Sequence

from zonal.display import Display
from zonal.errors import ZonalError, quoted
from zonal.layouts.layout import Layout
from zonal.rewriting.budget import Budget
from zonal.rewriting.new_files import NewFiles
from zonal.spark.place import Spark
from zonal.workload.logs import Logs
from zonal.workload.query import Workload


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_names(value: object) -> bool:
    return isinstance(value, Sequence) and all(map(_is_text, value))  # a text is a sequence of texts, too


def _is_size(value: object) -> bool:
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _are_settings(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(key) and _is_text(each) for key, each in value.items())


def _are_queries(value: object) -> bool:
    if isinstance(value, (Workload, Logs, str, os.PathLike)):
        return True
    return isinstance(value, Sequence) and all(isinstance(each, (str, os.PathLike)) for each in value)


def _is_place(value: object) -> bool:
    return isinstance(value, Spark) or callable(value) or hasattr(value, "conf")  # pyspark may not be there


_TEXT = _is_text, "a text"
_SIZE = _is_size, "a number of bytes, or a text such as '64MB'"
_SWITCH = (lambda value: isinstance(value, bool)), "True or False"
_SETTINGS = _are_settings, "a mapping of texts to texts"
_FUNCTION = callable, "a function"
_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "by": (_are_names, "a column, or a sequence of columns"),
    "layout": ((lambda value: isinstance(value, (str, Layout))), "a layout, or its text"),
    "target_file_size": _SIZE, "max_bytes": _SIZE, "commit_every": _SIZE,
    "where": _TEXT, "into": _TEXT, "catalog": _TEXT, "master": _TEXT, "remote": _TEXT, "compression": _TEXT,
    "full": _SWITCH, "dry_run": _SWITCH, "hide_literals": _SWITCH, "keep_properties": _SWITCH, "verify": _SWITCH,
    "picture": ((lambda value: isinstance(value, bool)), "True, False or None"),
    "storage_options": _SETTINGS, "conf": _SETTINGS,
    "queries": (_are_queries, "a workload, logs, or paths of logs"),
    "files": ((lambda value: isinstance(value, NewFiles)), "a NewFiles(…)"),
    "budget": ((lambda value: isinstance(value, Budget)), "a Budget(…)"),
    "display": ((lambda value: isinstance(value, Display)), "a Display(…)"),
    "spark": (_is_place, "a Spark session, a Spark(…), or a function"),
    "progress": _FUNCTION,
}  # fmt: skip
"""What each argument must be, where it isn't None."""


def check_arguments(given: Mapping[str, object]) -> None:
    """Raise an error that names the argument whose value has a wrong type."""
    for name, value in given.items():
        if name in _KINDS and (value is not None or _KINDS[name] is _SWITCH):
            fits, what = _KINDS[name]
            if not fits(value):
                raise ZonalError(f"{name}={quoted(repr(value))} is not {what}.")
        if isinstance(value, NewFiles | Budget | Display | Spark):
            check_arguments(vars(value))
