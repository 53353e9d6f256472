"""What an audit can be told is the same on the command line, in a file of tables and in Python, with equal defaults."""

import dataclasses
import inspect

import pytest

from zonal.auditing.drift import Alerts
from zonal.cli.audit import audit as command
from zonal.cli.config import TableConfig
from zonal.display import Display
from zonal.study.sampling import Sampling
from zonal.verbs.audit import audit, audit_versions
from zonal.workload.logs import Logs

SAME = {
    "table": ("table", (audit, "table")),
    "queries": ("queries", (Logs, "paths")),
    "name": ("names", (Logs, "names")),
    "dialect": ("dialect", (Logs, "dialect")),
    "timezone": ("timezone", (Logs, "timezone")),
    "view": ("views", (Logs, "views")),
    "half_life": ("half_life_days", (Logs, "half_life_days")),
    "cap": ("cap", (Logs, "cap")),
    "since": ("since", (Logs, "since")),
    "sample": ("sample", (Sampling, "queries")),
    "sample_rows": ("sample_rows", (Sampling, "rows")),
    "metadata_only": ("metadata_only", (Sampling, "look")),
    "hide_literals": ("hide_literals", (Display, "hide_literals")),
    "alert_ratio": ("alert_ratio", (Alerts, "ratio")),
    "alert_worse": ("alert_worse", (Alerts, "worse")),
    "alert_window": ("alert_window", (Alerts, "window")),
    "catalog": ("catalog", (audit, "catalog")),
    "storage_option": ("storage_options", (audit, "storage_options")),
}
"""By option: the key of a table in a file, and the argument of the verb or of a value that it takes."""
OF_A_RUN = {
    "seed": (Sampling, "seed"),
    "report": (Display, "picture"),
    "at": (audit, "at"),
    "database": (audit, "database"),
    "history": (audit_versions, "versions"),
}
"""Options that a file's tables share, or that have no sense for many of them."""
OF_THE_TERMINAL = {"context", "config", "no_database", "output", "trend", "webhook"}
GROUPS = {"queries": Logs, "sampling": Sampling, "alerts": Alerts, "display": Display}
"""The verb's arguments that are values."""


def defaults(function):
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


def test_every_option_has_its_argument_in_python_and_its_key_in_a_file():
    assert set(defaults(command)) == {*SAME, *OF_A_RUN, *OF_THE_TERMINAL}
    assert {key for key, _ in SAME.values()} == {each.name for each in dataclasses.fields(TableConfig)}


@pytest.mark.parametrize("value", [audit, *GROUPS.values()])
def test_every_argument_has_its_option(value):
    told = {name for owner, name in (*(each for _, each in SAME.values()), *OF_A_RUN.values()) if owner is value}
    others = {*GROUPS, "progress"} if value is audit else set()
    assert told == set(defaults(value)) - others


@pytest.mark.parametrize("option", [name for name in SAME if name not in ("table", "queries")])
def test_defaults_are_equal(option):
    key, (owner, name) = SAME[option]
    python = defaults(owner)[name]
    file = next(each for each in dataclasses.fields(TableConfig) if each.name == key)
    line = defaults(command)[option]
    in_file = file.default_factory() if file.default is dataclasses.MISSING else file.default
    if option == "metadata_only":
        python = not python  # rows are looked at unless only metadata is asked for
    assert (line or None) == (in_file or None) == (_empty(python) or None)


def _empty(value):
    """Return a factory's value, as dataclasses show it in signatures."""
    return None if type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else value
