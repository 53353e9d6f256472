"""Folders of Parquet files: only what broken copies left is told from rows that somebody wants."""

import pytest

from support.cleaning import RUN, cleaned, everything, left_by_run, now
from support.cluster_tables import home, parts_of, telemetry
from zonal.errors import TableError
from zonal.verbs.clean import clean


def test_folders_of_broken_copies_go_and_all_other_files_stay(tmp_path):
    table = home("parquet", tmp_path).make(parts_of(telemetry(30), 3), ["p"])
    before = everything(table.root)
    left_by_run(table.root)
    for strange in ("zonal-backup", "zonal-0123-20250101-000000-0123abcd", f"zonal-0123456789ab-{RUN}-0-copy"):
        (table.root / strange).mkdir()
        (table.root / strange / "x.parquet").write_bytes(b"rows")
        before[f"{strange}/x.parquet"] = b"rows"
    done = cleaned(table, now(), expire="7d")
    assert [file.path for file in done.files] == [f"zonal-0123456789ab-{RUN}-0/left.parquet"]
    assert everything(table.root) == before
    assert "Plain Parquet has no log" in done.notes[-1]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_of_another_format_is_no_folder_of_parquet_files(tmp_path, kind):
    """With `parquet:` before its path, its run folders would pass for leftovers, and they hold its rows."""
    table = home(kind, tmp_path).make(parts_of(telemetry(60), 2))
    table.cluster(by=["x"])
    before = everything(table.root)

    class Folder:
        name, options = f"parquet:{table.root}", {}

    with pytest.raises(TableError, match="is the folder of"):
        cleaned(Folder, now())
    Folder.name = f"parquet:{table.root / ('data' if kind == 'iceberg' else next(iter(table.run_folders())).name)}"
    with pytest.raises(TableError, match="lies in the folder of"):
        cleaned(Folder, now())
    assert everything(table.root) == before


def test_after_a_broken_copy_was_cleaned_up_the_copy_can_be_made(tmp_path):
    source = home("parquet", tmp_path, "source").make([telemetry(20)])
    copy = home("delta", tmp_path, "copy")
    left_by_run(copy.root)

    class Folder:
        name, options = str(copy.root), {}

    assert len(cleaned(Folder, now(), expire=None).files) == 1
    source.cluster(by=["x"], into=copy.name)
    assert copy.rows().num_rows == 20


def test_a_folder_that_is_not_there_is_told(tmp_path):
    (tmp_path / "events").mkdir()
    with pytest.raises(TableError, match=r"There is nothing at .*event'\. Did you mean 'events'\?"):
        clean(str(tmp_path / "event"))
