"""Write TPC-DS's store_sales (package tpcgen-cli)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PART_ROWS = 500_000


def write(scale: float, scratch: Path) -> None:
    """Generate the table, in the order of tickets, and write it without field ids; scale 1 is 2.9 million rows."""
    program = shutil.which("tpcgen-cli", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise SystemExit("tpcgen-cli is missing: pip install --group bench")
    command = [program, "tpcds", "parquet", "-s", f"{scale:g}", "--tables", "store_sales", "--output-dir", str(scratch)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (scratch / "made").mkdir()
    generated = pq.ParquetFile(scratch / "store_sales.parquet")
    for number, batch in enumerate(generated.iter_batches(PART_ROWS)):
        fields = [pa.field(field.name, field.type) for field in batch.schema]
        rows = pa.Table.from_arrays(batch.columns, schema=pa.schema(fields))
        pq.write_table(rows, scratch / "made" / f"part-{number:05d}.parquet", store_schema=False)
