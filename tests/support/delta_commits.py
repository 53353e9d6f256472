"""Read the commits of Delta tables in tests: actions of the log, and rows as another reader sees them."""

import json
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from support.delta_rewrites import LAYOUT, write_rows
from zonal.tables.delta.create import DeltaDestination


def first_two(snapshot):
    """The files with the rows below 200."""
    return np.flatnonzero(pc.less(snapshot.files.bounds["x"].lower, 200).to_numpy(zero_copy_only=False))


def theirs(where, column="x"):
    """The same rows as another reader sees them."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(where)))
    return sorted(pa.table(query.execute(f'SELECT "{column}" FROM t').read_all())[column].to_pylist())


def actions(where, version):
    lines = (Path(str(where)) / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def bodies(where, version, name):
    return [action[name] for action in actions(where, version) if name in action]


def debris(where):
    return [path.name for path in (Path(str(where)) / "_delta_log").iterdir() if path.name.startswith(".")]


def create(where, table, *, partitioning=(), layout=LAYOUT):
    """Write rows into a new table, one file per partition."""
    destination = DeltaDestination(str(where))
    columns = destination.file_columns(table.schema, partitioning)
    groups = [{}]
    if partitioning:
        groups = table.select(partitioning).group_by(list(partitioning)).aggregate([]).to_pylist()
    kinds = {name: table.schema.field(name).type for name in partitioning}
    partitions = [{name: pa.scalar(group[name], kinds[name]) for name in partitioning} for group in groups]
    writing = destination.writing(table.schema, partitioning, partitions, layout=layout, run="r1")
    added = []
    for number, partition in enumerate(groups):
        mask = [all(row[name] == partition[name] for name in partitioning) for row in table.to_pylist()]
        added += write_rows(writing, layout, number, table.filter(pa.array(mask)).select(columns))
    return destination, added
