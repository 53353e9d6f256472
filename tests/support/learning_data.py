"""Tables with their queries, half to learn from and half to measure with: real flights, TPC-H, skewed telemetry.

They are the benchmarks' own, of a size for tests. Where a package or the benchmarks are missing, tests are skipped.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

sys.path.insert(0, str(Path(__file__).parents[2]))
layout_data = pytest.importorskip("benchmarks.layout_data", reason="the benchmarks, which make the data, are not here")

ROWS = {"tpch": 120_000, "telemetry": 200_000, "flights": 336_776}
FILES = 30


@dataclass(frozen=True, eq=False)
class Case:
    """A table, and WHERE clauses."""

    data: pa.Table
    learned: list[str]
    asked: list[str]


def case_of(name: str) -> Case:
    """Make the case, with the columns that queries filter and one, if there is any, that only moves along."""
    try:
        data, learned, asked = layout_data.CASES[name](ROWS[name], 11)
    except ModuleNotFoundError as missing:
        pytest.skip(f"no data: {missing}")
    text = " ".join([*learned, *asked])
    moved = [column for column in data.column_names if column not in text][-1:]
    return Case(
        data.select([column for column in data.column_names if column in text or column in moved]), learned, asked
    )


def delta_table(case: Case, folder: Path) -> str:
    """Write the rows as they arrived, in a few files."""
    write_deltalake(folder, case.data, target_file_size=2**20)
    return f"delta:{folder}"
