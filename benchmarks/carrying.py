"""Measure what it costs to carry deletes over to new files, against the rewrite that it saves.

`PYTHONPATH=tests python -m benchmarks.carrying [--rows 1000000]`: a Delta table of 16 files is rewritten in this
process while another writer deletes rows of one file, or of all, by deletion vectors. Printed are seconds of
processors: of the rewrite up to its commit, and of carrying the deletes over.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from support.cluster_tables import Meanwhile, parts_of, telemetry  # type: ignore[import-not-found]
from support.delta_tables import field  # type: ignore[import-not-found]
from support.delta_vectors import Vectored  # type: ignore[import-not-found]
from zonal.rewriting import in_place
from zonal.rewriting.carry_over import carry_over

FILES = 16
FIELDS = [field(*one) for one in (("id", "long"), ("x", "long"), ("y", "double"), ("s", "string"), ("p", "string"))]
CASES = ((1, 1), (1, 100), (FILES, 1600), (FILES, 10_000))
"""Files with deletes, and rows that are deleted in all."""


def measure(rows: int, files: int, deletes: int) -> tuple[float, float, int]:
    """Return what the rewrite took without carrying, what carrying took, and how many deletes were carried."""
    spent: list[float] = []

    def timed(*given: Any) -> Any:
        began = time.process_time()
        result = carry_over(*given)
        spent.append(time.process_time() - began)
        return result

    with tempfile.TemporaryDirectory() as folder:
        table = Vectored(Path(folder)).create(parts_of(telemetry(rows), FILES), FIELDS)
        draw = np.random.default_rng(0)
        places = min(rows // FILES, 2**16)

        def other() -> None:
            for number in range(files):
                table.delete(f"{number}.parquet", sorted(draw.choice(places, deletes // files, replace=False).tolist()))

        began = time.process_time()
        with patch.object(in_place, "carry_over", timed):
            done = table.cluster(by=["x", "y"], runner=Meanwhile(other), target_file_size=rows * 20 // FILES)
        return time.process_time() - began - sum(spent), sum(spent), done.run.carried_deletes


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rows", type=int, default=1_000_000)
    rows = options.parse_args().rows
    table = Table("files with deletes", "deletes", "carried", "rewrite, s", "carrying, s")
    for files, deletes in CASES:
        rewrite, carrying, carried = measure(rows, files, deletes)
        table.add_row(str(files), f"{deletes:,}", f"{carried:,}", f"{rewrite:.1f}", f"{carrying:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
