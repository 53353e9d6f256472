"""Arguments of wrong types: every public function refuses them by name, before any work."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal
from zonal.arguments import check_arguments
from zonal.errors import ZonalError, naming_flags

NEEDED = {
    "advise": {"queries": ["q.sql"]},
    "audit": {"queries": ["q.sql"]},
    "audit_versions": {"queries": ["q.sql"], "versions": 2},
    "cluster_batch": {"data": pa.table({"x": [2, 1]}), "by": "x"},
    "clustered": {"layout": "zorder(x)", "files": 2},
    "explain": {"where": "x = 1"},
    "open_table": {"name": "table"},
    "prune": {"where": "x = 1"},
    "read": {"spark": None},
    "show": {},
    "Layout": {"kind": "zorder", "columns": ["x"]},
    "Logs": {"paths": ["q.sql"]},
}
WITHOUT_TABLE = {"cluster_batch", "clustered", "open_table", "Layout", "Logs"}
GIVEN = [
    (name, argument)
    for name in NEEDED
    for argument, parameter in inspect.signature(getattr(zonal, name)).parameters.items()
    if "bool" not in str(parameter.annotation) or argument == "catalog_options"
]


@pytest.mark.parametrize(("function", "argument"), GIVEN)
def test_arguments_of_wrong_types_are_refused_by_name(tmp_path, monkeypatch, function, argument):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "table.parquet")
    (tmp_path / "q.sql").write_text("SELECT * FROM table WHERE x = 1;")
    table = {} if function in WITHOUT_TABLE else {"table": str(tmp_path / "table.parquet")}
    for wrong in (object(), [object()], {1: object()}):
        with pytest.raises(ZonalError) as refused:
            getattr(zonal, function)(**table | NEEDED[function] | {argument: wrong})
        assert (
            argument in str(refused.value)
            or "is no table" in str(refused.value)
            or function in ("Layout", "cluster_batch")
        )


def letters(
    text: str = "",
    whole: int = 0,
    share: float | None = None,
    switch: bool = False,
    at: datetime | None = None,
    words: Sequence[str] = (),
    logs: "Sequence[str | os.PathLike[str]] | None" = None,
    paths: Sequence[str | os.PathLike[str]] = (),
    options: Mapping[str, str] | None = None,
    tell: Callable[[str], None] | None = None,
) -> None: ...


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": 5}, "text=5 is not a text."),
        ({"text": b"x"}, "text=b'x' is not a text."),
        ({"whole": True}, "whole=True is not a whole number."),
        ({"whole": "5"}, "whole='5' is not a whole number."),
        ({"share": "a fifth"}, "share='a fifth' is not a number, or None."),
        ({"switch": 1}, "switch=1 is not True or False."),
        ({"at": "2026-01-01"}, "at='2026-01-01' is not a datetime, or None."),
        ({"words": "orders"}, "words='orders' is not a sequence of texts."),
        ({"words": ["a", 3]}, "words=['a', 3] is not a sequence of texts."),
        ({"paths": [1.5]}, "paths=[1.5] is not a sequence of paths."),
        ({"options": {"a": 1}}, "options is not a mapping of texts to texts, or None."),
        ({"tell": "me"}, "tell='me' is not a function, or None."),
        ({"text": ["many\nlines"] * 99}, "…"),
    ],
)
def test_a_message_names_the_argument_its_value_and_what_it_should_be(given, message):
    with pytest.raises(ZonalError) as refused:
        check_arguments(letters, given)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 150
    assert "\n" not in str(refused.value)


def test_arguments_as_annotated_are_accepted(tmp_path):
    whole = pa.scalar(5).as_py()
    check_arguments(letters, {"text": "", "whole": whole, "share": 1, "switch": True, "at": datetime.now()})
    check_arguments(letters, {"share": 0.5, "words": ("a",), "paths": [tmp_path, "a"], "options": {}, "tell": print})
    check_arguments(letters, {"share": None, "words": [], "options": None, "logs": 5, "another": 5})


def test_on_the_command_line_flags_are_named():
    with naming_flags(), pytest.raises(ZonalError, match=r"^--whole x is not a whole number"):
        check_arguments(letters, {"whole": "x"})


def test_values_of_options_that_may_be_secret_are_not_shown():
    with pytest.raises(ZonalError, match="storage_options is not a mapping of texts to texts, or None") as error:
        zonal.show("events", storage_options={"aws_secret_access_key": b"hunter2"})
    assert "hunter2" not in str(error.value)
