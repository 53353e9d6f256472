"""The kernel runs inside Spark's Python workers."""

import pyarrow as pa
import pytest

from zonal import Layout, Ranks
from zonal.layouts.curves import to_signed
from zonal.layouts.keys import key_words
from zonal.spark.versions import collected

pytestmark = pytest.mark.spark


def test_keys_made_by_executors_are_those_of_the_driver(spark):
    rows = spark.range(20_000).selectExpr("id", "id * 7919 % 1000 AS x", "cast(id % 97 AS string) AS s")
    layout = Layout("hilbert", ("x", "s"))
    sample = collected(rows)
    stored = Ranks.fit(sample, layout.columns).to_json()

    def with_keys(batches):
        ranks = Ranks.from_json(stored)
        for batch in batches:
            (key,) = key_words(batch, layout, ranks)
            yield pa.record_batch({"id": batch["id"], "key": to_signed(key)})

    found = collected(rows.mapInArrow(with_keys, "id long, key long")).sort_by("id")
    (expected,) = key_words(sample, layout, Ranks.from_json(stored))
    assert found["key"].to_numpy().tolist() == to_signed(expected).tolist()
