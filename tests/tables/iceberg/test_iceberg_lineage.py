"""Row lineage of Iceberg tables of format version 3, through rewrites."""

from collections import Counter

import numpy as np
import pytest

from support.iceberg_commits import made
from support.iceberg_rewriting import LAYOUT, Writer, opened, replacement, rows_of
from zonal.errors import TableError
from zonal.tables.iceberg.manifests import read_contents
from zonal.tables.iceberg.table import IcebergTable


def lineage(table: IcebergTable) -> dict[int, tuple[int, int]]:
    snapshot = table.snapshot()
    scan = table.scan(snapshot, np.arange(len(snapshot.files)))
    return {
        row["x"]: (row["_row_id"], row["_last_updated_sequence_number"])
        for source in scan.sources
        for row in rows_of(source, scan.reading).to_pylist()
    }


def test_row_ids_and_versions_stay_through_rewrites(catalog):
    table = made(catalog, version=3)
    before = lineage(table)
    assert sorted(row_id for row_id, _ in before.values()) == list(range(100))
    assert Counter(sequence for _, sequence in before.values()) == {1: 25, 2: 25, 3: 25, 4: 25}
    for run in ("r1", "r2"):
        table = table.newest()
        current = catalog.load_table("db.t")
        next_row_id = current.metadata.next_row_id
        table.commit(replacement(table, table.snapshot(), [0, 2], run=run))
        after = catalog.load_table("db.t")
        snapshot = after.current_snapshot()
        assert snapshot.first_row_id == next_row_id
        assert after.metadata.next_row_id == next_row_id + snapshot.added_rows
        assert snapshot.added_rows >= 50
        assert lineage(table.newest()) == before
    for part in read_contents(after.io, snapshot.manifest_list):
        assert part.line[520] is not None


def test_files_from_before_version_3_have_null_ids_until_they_get_some(catalog):
    made(catalog)
    writer = Writer(catalog, format_version=3)
    writer.publish()
    table = opened(catalog)
    assert set(lineage(table).values()) == {(None, None)}
    table.commit(replacement(table, table.snapshot(), [0, 1]))
    after = lineage(table.newest())
    assert len({row_id for row_id, _ in after.values()}) == 100
    assert catalog.load_table("db.t").metadata.next_row_id >= 100


def test_metadata_that_would_be_lost_is_refused(catalog):
    made(catalog, version=3)
    writer = Writer(catalog)
    writer.metadata["encryption-keys-of-tomorrow"] = [{"key-id": "k"}]
    writer.publish()
    table = opened(catalog)
    with pytest.raises(TableError, match="'encryption-keys-of-tomorrow'"):
        table.writing(table.snapshot(), layout=LAYOUT, run="r")


def test_nothing_of_pyiceberg_is_changed_for_version_3(catalog):
    table = made(catalog, version=3)
    table.commit(replacement(table, table.snapshot()))
    with pytest.raises(NotImplementedError):
        catalog.load_table("db.t").metadata.model_dump_json()
    with pytest.raises(NotImplementedError), catalog.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"a": "b"})
