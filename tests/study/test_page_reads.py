"""Pages that queries read of a row group, by the bounds that its rows would have in one order or another."""

import numpy as np
import pyarrow as pa
import pytest

from zonal.predicates.bind import bind
from zonal.sql.where import parse_where
from zonal.study.page_reads import PAGE_ROWS, page_share
from zonal.worker.write.writer import RowGroups

PAGES = 5
COUNT = PAGES * PAGE_ROWS
ROWS = pa.table(
    {
        "number": pa.array(np.arange(COUNT)),
        "mixed": pa.array(np.arange(COUNT) * 7919 % COUNT),
        "text": pa.array([f"{number // PAGE_ROWS}-{number}" for number in range(COUNT)]).dictionary_encode(),
        "odd": pa.array(np.where(np.arange(COUNT) % 2, np.nan, np.arange(COUNT))),
    }
)
NAMES = {"n": "number", "m": "mixed", "t": "text", "o": "odd"}
SCHEMA = pa.schema({"n": pa.int64(), "m": pa.int64(), "t": pa.string(), "o": pa.float64(), "elsewhere": pa.int64()})


def share(*conditions, keys=("number",)):
    queries = [(bind(parse_where(text), SCHEMA), weight) for text, weight in conditions]
    return page_share(queries, NAMES, keys)(RowGroups(ROWS, [0]))


@pytest.mark.parametrize(
    ("condition", "pages"),
    [
        ("n = 30000", 1),
        ("n BETWEEN 30000 AND 50000", 2),
        ("m = 30000", 5),
        ("t >= '3' AND t < '4'", 1),
        ("n < 10 OR n > 99000", 2),
        ("o < 10", 1),
        ("elsewhere = 5", 5),
        ("m = 3 AND n = 3", 1),
    ],
)
def test_pages_are_read_that_might_hold_a_matching_row(condition, pages):
    assert share((condition, 1.0)) == pytest.approx(pages / PAGES)


def test_queries_count_by_their_weight_where_they_read_the_row_group_at_all():
    assert share(("n = 30000", 3.0), ("m = 30000", 1.0)) == pytest.approx((3 * 0.2 + 1) / 4)
    assert share(("n = 30000", 1.0), ("n > 1000000", 5.0)) == pytest.approx(0.2)


def test_without_queries_look_ups_of_the_keys_count():
    assert share() == pytest.approx(0.2)
    assert share(keys=("mixed",)) == pytest.approx(1.0, abs=0.01)
    assert share(("n > 1000000", 1.0), keys=("number", "mixed")) == pytest.approx(0.6, abs=0.01)
