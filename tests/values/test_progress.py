"""Progress: all verbs tell of their steps in one way."""

import inspect

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zonal
from zonal.values.progress import Progress, Step

VERBS = [
    name
    for name in zonal.__all__
    if inspect.isfunction(getattr(zonal, name)) and "progress" in inspect.signature(getattr(zonal, name)).parameters
]


def test_verbs_that_work_for_long_are_all_there():
    assert {"show", "explain", "advise", "audit", "audit_versions", "cluster", "append", "clean", "trend"} == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_one_kind_of_callback(verb):
    assert inspect.signature(getattr(zonal, verb)).parameters["progress"].annotation == Progress | None


@pytest.mark.parametrize(("verb", "more"), [(zonal.show, {}), (zonal.explain, {"where": "x = 1"})])
def test_reading_footers_is_counted(tmp_path, verb, more):
    for number in range(2):
        pq.write_table(pa.table({"x": [number]}), tmp_path / f"{number}.parquet")
    heard = []
    verb(str(tmp_path), **more, progress=heard.append)
    assert heard[0] == Step("reading the table's metadata")
    assert Step("reading footers", done=2, total=2) in heard


def test_cleaning_says_what_it_looks_for(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "1.parquet")
    heard = []
    zonal.clean(str(tmp_path), progress=heard.append)
    assert heard == [Step("looking for files that nobody needs")]
