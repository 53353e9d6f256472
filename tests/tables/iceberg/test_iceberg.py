"""Iceberg tables: versions, layouts, blockers, catalogs, and damaged or missing metadata."""

import json
import os
import random
import struct
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, TimestampNanoType, UnknownType

from support.iceberg_snapshots import LONG, UTC, column, load, read
from support.iceberg_tables import Handmade, properties_in
from zonal import explain, prune, show
from zonal.errors import TableError, naming_flags
from zonal.layouts.layout import Layout
from zonal.tables.iceberg.table import IcebergTable

# --- versions ------------------------------------------------------------------------------------------------------


def test_branches_tags_and_snapshots(catalog):
    table = catalog.create_table("db.t", LONG)
    empty = load(table)
    assert (len(empty.files), empty.version, empty.time, empty.commits) == (0, None, None, {})
    assert len(empty.files.bounds["id"].lower) == 0
    table.append(pa.table({"id": pa.array([1, 2])}))
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "release").create_branch(first, "audit").commit()
    with table.update_schema() as update:
        update.add_column("more", LongType())
    table.append(pa.table({"id": pa.array([3]), "more": pa.array([4])}))
    newest = load(table)
    assert (len(newest.files), newest.version) == (2, table.current_snapshot().snapshot_id)
    assert newest.time.tzinfo is UTC
    assert list(newest.commits) == [first, newest.version]
    assert newest.commits[first].operation == "append"
    assert newest.commits[first].details["added-records"] == "2"
    assert sorted(newest.files.added_by.tolist()) == sorted([first, newest.version])
    for version in (first, str(first), "release", "audit"):
        old = load(table, version=version)
        assert (old.version, len(old.files)) == (first, 1)
        assert old.schema.names == (["id", "more"] if version == "audit" else ["id"]), version
    with pytest.raises(TableError, match=r"Unknown version 'relaese'.*Did you mean 'release'\?"):
        load(table, version="relaese")
    with pytest.raises(TableError, match=f"Unknown version '7'.*{first}"):
        load(table, version=7)


def test_verbs_that_read_metadata_open_a_table_in_a_catalog_by_its_options(catalog, tmp_path):
    table = catalog.create_table("db.t", LONG)
    table.append(pa.table({"id": pa.array([1, 2])}))
    there = {"catalog": "test", "storage_options": properties_in(tmp_path)}
    assert show("iceberg:db.t", **there).table.files == 1
    assert explain("iceberg:db.t", where="id = 2", **there).levels[0].kept == 1
    assert len(prune("iceberg:db.t", where="id = 2", **there)) == 1
    assert prune("iceberg:db.t", where="id = 3", **there) == []


def test_metadata_file_and_catalog_tell_the_same(catalog, tmp_path):
    table = catalog.create_table("db.t", LONG, properties={"note": "x"})
    table.append(pa.table({"id": pa.array([1, 2])}))
    by_file = IcebergTable.from_metadata(table.metadata_location)
    by_name = IcebergTable.from_catalog("db.t", catalog="test", catalog_properties=properties_in(tmp_path))
    assert by_name.name == "db.t"
    assert by_file.name == table.metadata_location
    one, other = by_file.snapshot(), by_name.snapshot()
    assert one.files.paths.equals(other.files.paths)
    assert one.location == other.location == table.location()
    assert one.properties["note"] == "x"
    with by_name.open_file(one.files.paths[0].as_py()) as file:
        assert file.read(4) == b"PAR1"
        assert file.seek(0) == 0
    with pytest.raises(TableError, match=r"nothing\.parquet.* doesn't exist"):
        by_name.open_file(f"{table.location()}/data/nothing.parquet")


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_all_format_versions(catalog, format_version):
    table = catalog.create_table("db.t", LONG, properties={"format-version": str(min(format_version, 2))})
    made = Handmade(table, format_version=format_version)
    bound = {1: struct.pack("<q", 5)}
    made.add_manifest([made.data_file("a", lower_bounds=bound, upper_bounds=bound, null_value_counts={1: 2})])
    snapshot = read(made.commit())
    assert snapshot.files.paths.to_pylist() == ["a"]
    assert snapshot.files.added_by.tolist() == [snapshot.version]
    assert snapshot.files.bounds["id"].upper.to_pylist() == [5]
    assert snapshot.files.bounds["id"].nulls.tolist() == [2]
    assert snapshot.files.delete_files.tolist() == [0]
    assert snapshot.blockers == ()


# --- layouts, blockers, errors -------------------------------------------------------------------------------------


def test_layout_of_table_and_files(catalog):
    layout = Layout.parse("zorder(id, more)")
    table = catalog.create_table("db.t", LONG, properties={"zonal.layout": layout.to_json()})
    table.append(pa.table({"id": pa.array([1])}))
    for number, text in enumerate((layout.to_json(), layout.id, "{}")):
        table.append(pa.table({"id": pa.array([number])}), snapshot_properties={"zonal.layout": text})
    snapshot = load(table)
    assert snapshot.layout == layout
    assert snapshot.problems == ()
    assert Counter(snapshot.files.layout_ids.to_pylist()) == {layout.id: 2, None: 2}
    with table.transaction() as change:
        change.set_properties({"zonal.layout": "{}"})
    broken = load(table)
    assert broken.layout is None
    assert "zonal.layout" in broken.problems[0]


def test_blockers_name_what_cannot_be_rewritten(catalog):
    schema = Schema(column(1, "id", LongType()), column(2, "ns", LongType()), column(3, "u", LongType()))
    made = Handmade(catalog.create_table("db.t", schema), format_version=3)
    made.retype(ns=TimestampNanoType(), u=UnknownType())
    bound = {1: struct.pack("<q", 5)}
    made.add_manifest(
        [
            made.data_file("a", key_metadata=b"key"),
            made.data_file("b", file_format=FileFormat.ORC, lower_bounds=bound),
            made.data_file("c", file_format=FileFormat.AVRO),
        ]
    )
    snapshot = read(made.commit())
    assert snapshot.blockers == (
        "1 of 3 data files are AVRO; zonal rewrites Parquet files only.",
        "1 of 3 data files are ORC; zonal rewrites Parquet files only.",
        "The table is encrypted; zonal has no keys.",
        "zonal can't write columns of these types: ns (timestamp_ns), u (unknown).",
    )
    assert snapshot.files.bounds["id"].lower.to_pylist() == [None, 5, None], "ORC files have bounds all the same"
    assert snapshot.files.bounds["u"].lower.type == pa.null()


def test_missing_manifest_is_named(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    manifest = Path(made.add_manifest([made.data_file("a")]))
    path = made.commit()
    manifest.unlink()
    with pytest.raises(TableError, match=manifest.name):
        read(path)


def test_damaged_manifests_are_errors_and_never_crash(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    bound = {1: struct.pack("<q", 5)}
    files = [made.data_file(f"f{i}", lower_bounds=bound, null_value_counts={1: i}) for i in range(20)]
    manifest = Path(made.add_manifest(files))
    path, whole = made.commit(), manifest.read_bytes()
    chance = random.Random(1)  # noqa: S311
    for _ in range(60):
        manifest.write_bytes(whole[: chance.randrange(len(whole))])
        with pytest.raises(TableError, match=manifest.name):
            read(path)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        manifest.write_bytes(damaged)
        try:
            snapshot = read(path)
            assert len(snapshot.files.bounds["id"].lower) == len(snapshot.files), "decoded into something consistent"
        except TableError as error:
            assert manifest.name in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"record_count": -1}, "number of rows of 'one.parquet' can't be -1"),
        ({"record_count": -(2**40)}, "number of rows of 'one.parquet' can't be -1099511627776"),
        ({"file_size_in_bytes": -7}, "size of 'one.parquet' can't be -7"),
        ({"file_size_in_bytes": 10**18}, "size of 'one.parquet' can't be 1000000000000000000"),
    ],
)
def test_counts_that_no_file_has_are_errors_that_name_it(catalog, fields, message):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("one.parquet", **fields)])
    with pytest.raises(TableError, match=message):
        read(made.commit())


def test_a_path_that_no_file_has_is_an_error_that_names_it(catalog):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.add_manifest([made.data_file("a\0b")])
    with pytest.raises(TableError, match=r"no file can be called 'a\\x00b'"):
        read(made.commit())


def test_a_location_that_pyiceberg_takes_for_a_relative_path_is_refused(catalog, tmp_path):
    made = Handmade(catalog.create_table("db.t", LONG))
    made.metadata["location"] = f"file://localhost{tmp_path}/warehouse/db/t"
    made.add_manifest([made.data_file("a")])
    with pytest.raises(TableError, match="takes the machine's name for a folder"):
        read(made.commit())


def test_a_pipe_is_refused_and_not_waited_for(catalog, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    table = IcebergTable("db.t", catalog.create_table("db.t", LONG))
    for path in (f"{tmp_path}/pipe", f"file://{tmp_path}/pipe", f"file://localhost{tmp_path}/pipe"):
        with pytest.raises(TableError, match=r"/pipe'.* isn't a regular file"):
            table.open_file(path)


def test_damaged_metadata_file_is_named(tmp_path):
    path = tmp_path / "v1.metadata.json"
    with pytest.raises(TableError, match=r"There is no metadata file .*v1\.metadata\.json"):
        IcebergTable.from_metadata(str(path))
    for text in ("{", "{}", json.dumps({"format-version": 9})):
        path.write_text(text)
        with pytest.raises(TableError, match=r"Can't read the metadata file .*v1\.metadata\.json"):
            IcebergTable.from_metadata(str(path))


# --- catalogs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, and no configuration of PyIceberg."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE", "PYICEBERG_HOME"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(folder)
    return folder


def test_no_catalog_says_how_to_configure_one_and_creates_nothing(home):
    with pytest.raises(TableError, match=r"No Iceberg catalog.*\.pyiceberg\.yaml.*PYICEBERG_CATALOG__DEFAULT__URI"):
        IcebergTable.from_catalog("db.t")
    with pytest.raises(TableError, match=r"Unknown catalog 'prod'.*PYICEBERG_CATALOG__PROD__URI"):
        IcebergTable.from_catalog("db.t", catalog="prod")
    with pytest.raises(TableError, match=r"no database file .*none\.db"):
        IcebergTable.from_catalog("db.t", catalog_properties={"uri": f"sqlite:///{home}/none.db"})
    assert list(home.iterdir()) == []


def test_embedded_and_configured_catalogs(home, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    (home / ".zonal").mkdir()
    uri = f"sqlite:///{home}/.zonal/catalog.db"
    for name in ("zonal", "prod"):
        catalog = SqlCatalog(name, uri=uri, warehouse=f"file://{home}/.zonal/warehouse/{name}")
        catalog.create_namespace("db")
        catalog.create_table("db.events", LONG)
    assert IcebergTable.from_catalog("db.events").snapshot().location.endswith("zonal/db/events")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", uri)
    assert IcebergTable.from_catalog("db.events", catalog="prod").snapshot().location.endswith("prod/db/events")
    with pytest.raises(TableError, match=r"no table 'db\.event'.*'prod'.*Did you mean 'db\.events'\?"):
        IcebergTable.from_catalog("db.event", catalog="prod")
    with pytest.raises(TableError, match=r"no table 'dc\.events'.*no namespace 'dc' either.*'db'"):
        IcebergTable.from_catalog("dc.events", catalog="prod")
    with pytest.raises(TableError, match="'events'"):
        IcebergTable.from_catalog("events", catalog="prod")


def test_the_only_catalog_is_the_default_and_several_are_named(home, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    for name in ("prod", "other"):
        catalog = SqlCatalog(name, uri=f"sqlite:///{home}/{name}.db", warehouse=f"file://{home}/{name}")
        catalog.create_namespace("db")
        catalog.create_table("db.events", LONG)
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  prod:\n    uri: sqlite:///{home}/prod.db\n")
    assert IcebergTable.from_catalog("db.events").snapshot().location.endswith("prod/db/events")
    own = {"uri": f"sqlite:///{home}/none.db"}
    with pytest.raises(TableError, match=r"The catalog 'default' has no database file .*none\.db"):
        IcebergTable.from_catalog("db.events", catalog_properties=own)
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", f"sqlite:///{home}/other.db")
    with pytest.raises(TableError, match=r"Several Iceberg catalogs are configured: 'prod', 'other'\. Name one: cat"):
        IcebergTable.from_catalog("db.events")
    with naming_flags(), pytest.raises(TableError, match="Name one: --catalog prod"):
        IcebergTable.from_catalog("db.events")
    assert IcebergTable.from_catalog("db.events", catalog="other").snapshot().location.endswith("other/db/events")
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "other")
    assert IcebergTable.from_catalog("db.events").snapshot().location.endswith("other/db/events")


def test_the_embedded_catalog_has_a_name_beside_others(home, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    with pytest.raises(TableError, match="Unknown catalog 'zonal'"):
        IcebergTable.from_catalog("db.events", catalog="zonal")
    (home / ".zonal").mkdir()
    catalog = SqlCatalog("zonal", uri=f"sqlite:///{home}/.zonal/catalog.db", warehouse=f"file://{home}/own")
    catalog.create_namespace("db")
    catalog.create_table("db.events", LONG)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{home}/prod.db")
    assert IcebergTable.from_catalog("db.events", catalog="zonal").snapshot().location.endswith("own/db/events")


def test_errors_of_catalogs_show_no_password(monkeypatch):
    def refuse(_, **properties):
        raise ValueError(f"can't parse {properties['uri']}")

    monkeypatch.setattr("zonal.tables.iceberg.catalogs.load_catalog", refuse)
    with pytest.raises(TableError, match=r"postgresql://…@host/x") as caught:
        IcebergTable.from_catalog("db.t", catalog="c", catalog_properties={"uri": "postgresql://me:hunter2@host/x"})
    assert "hunter2" not in str(caught.value)
