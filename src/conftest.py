"""Tables for the examples in docstrings: each runs in a folder that has them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import zonal

QUERIES = """SELECT * FROM events WHERE id = 3;
SELECT * FROM orders WHERE id BETWEEN 4 AND 5;
SELECT * FROM events WHERE day = 2 AND id > 7;
"""


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`events`, a folder of four Parquet files; `orders`, the same rows as a Delta table; `queries.sql`."""
    folder: Path = tmp_path_factory.mktemp("lake")
    (folder / "events").mkdir()
    for day in range(4):
        rows = pa.table({"day": [day] * 10, "id": list(range(10))})
        pq.write_table(rows, folder / "events" / f"{day}.parquet")
        write_deltalake(folder / "orders", rows, mode="append")
    (folder / "queries.sql").write_text(QUERIES)
    return folder


@pytest.fixture(autouse=True)
def in_the_lake(lake: Path, doctest_namespace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run examples there; they know `zonal` by its name."""
    monkeypatch.chdir(lake)
    doctest_namespace["zonal"] = zonal
