"""Deletes of Iceberg tables: which of them apply to which files, and which entries are live."""

import random

import pyarrow as pa
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from support.iceberg_snapshots import LONG, load, read
from support.iceberg_tables import Handmade
from zonal.snapshot import UNKNOWN


def test_deletes_of_all_kinds(catalog):
    made = Handmade(catalog.create_table("db.t", LONG), format_version=3)
    made.add_manifest([made.equality_deletes("older-eq.parquet")])
    made.commit()
    made.add_manifest([made.data_file(name) for name in ("vector", "referenced", "bounds", "loose", "plain")])
    made.commit()
    made.add_manifest(
        [
            made.deletion_vector("vector", record_count=4),
            made.position_deletes("p0", referenced_data_file="vector", record_count=2),
            made.position_deletes("p1", referenced_data_file="referenced", record_count=3),
            made.position_deletes("p2", paths=("bounds", "bounds"), record_count=5),
            made.position_deletes("p3", paths=("kilo", "love")),
            made.position_deletes("p4", referenced_data_file="no such file"),
        ]
    )
    made.commit()
    made.add_manifest([made.data_file("later")])
    before = read(made.commit()).files
    assert dict(zip(before.paths.to_pylist(), before.delete_files.tolist(), strict=True)) == {
        "vector": 1,
        "referenced": 1,
        "bounds": 1,
        "loose": 1,
        "plain": 0,
        "later": 0,
    }
    assert before.deleted.tolist() == [4, 3, 5, UNKNOWN, 0, 0]
    made.add_manifest([made.equality_deletes("eq.parquet")])
    after = read(made.commit()).files
    assert after.delete_files.tolist() == [2, 2, 2, 2, 1, 1]
    assert after.deleted.tolist() == [UNKNOWN] * 6


def test_position_deletes_apply_to_their_own_commit_and_equality_deletes_do_not(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("a")])
    made.add_manifest([made.position_deletes("p"), made.equality_deletes("e")])
    assert read(made.commit()).files.delete_files.tolist() == [1]


def test_equality_deletes_stay_in_their_partition_unless_their_spec_has_none(catalog):
    table = catalog.create_table("db.t", LONG)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id_part")
    made = Handmade(table)
    made.add_manifest([made.data_file("x", partition=Record(1)), made.data_file("y", partition=Record(2))], spec_id=1)
    made.add_manifest([made.data_file("z")], spec_id=0)
    made.commit()
    made.add_manifest([made.equality_deletes("in-1", partition=Record(1))], spec_id=1)
    made.add_manifest([made.equality_deletes("in-3", partition=Record(3))], spec_id=1)
    assert read(made.commit()).files.delete_files.tolist() == [1, 0, 0]
    made.add_manifest([made.equality_deletes("everywhere")], spec_id=0)
    assert read(made.commit()).files.delete_files.tolist() == [2, 1, 1]


def test_deletes_match_the_specification_by_brute_force(catalog):
    chance = random.Random(7)  # noqa: S311
    table = catalog.create_table("db.t", LONG)
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id_part")
    made = Handmade(table)
    data, deletes = [], []
    for sequence in range(1, 9):
        parts = [chance.randrange(3) for _ in range(4)]
        names = [f"f{chance.randrange(100):02d}-{sequence}-{i}" for i in range(4)]
        files = [made.data_file(name, partition=Record(part)) for name, part in zip(names, parts, strict=True)]
        data += [(name, part, sequence) for name, part in zip(names, parts, strict=True)]
        made.add_manifest(files, spec_id=1)
        new = []
        for _ in range(3):
            part, (low, high) = chance.randrange(3), sorted(f"f{chance.randrange(100):02d}" for _ in range(2))
            if chance.random() < 0.5:
                new.append(made.equality_deletes("e", partition=Record(part)))
                deletes.append(("equality", part, sequence, "", "z"))
            else:
                new.append(made.position_deletes("p", paths=(low, high), partition=Record(part)))
                deletes.append(("position", part, sequence, low, high))
        made.add_manifest(new, spec_id=1)
        path = made.commit()
    files = read(path).files
    for at, (name, part, sequence) in enumerate(data):
        expected = sum(
            (sequence < at_sequence if kind == "equality" else sequence <= at_sequence and low <= name <= high)
            for kind, its_part, at_sequence, low, high in deletes
            if its_part == part
        )
        position = files.paths.to_pylist().index(name)
        assert files.delete_files[position] == expected, (at, name)


def test_copy_on_write_delete_leaves_live_files_only(catalog):
    table = catalog.create_table("db.t", LONG)
    for start in (0, 10):
        table.append(pa.table({"id": pa.array(range(start, start + 5), pa.int64())}))
    table.delete("id < 3")
    files = load(table).files
    assert sorted(files.rows.tolist()) == [2, 5]
    assert files.delete_files.tolist() == [0, 0]
    assert sorted(files.bounds["id"].lower.to_pylist()) == [3, 10]


def test_entries_marked_deleted_are_not_live(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("gone")], status=ManifestEntryStatus.DELETED)
    made.add_manifest([made.data_file("here")], status=ManifestEntryStatus.EXISTING)
    assert read(made.commit()).files.paths.to_pylist() == ["here"]
