"""Catalogs are found by their names, also inside of a table's, and list what they have."""

import json

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

import zonal
from support.cluster_tables import Iceberg, telemetry
from support.iceberg_tables import properties_in
from zonal.cli.app import app
from zonal.errors import TableError
from zonal.tables.iceberg.catalogs import split_catalog
from zonal.tables.registry import open_destination, open_table


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A catalog that PyIceberg is configured for, with tables in namespaces inside of others."""
    catalog = SqlCatalog("lake", **properties_in(tmp_path))
    for namespace, name in (("sales", "orders"), ("sales.eu", "orders"), ("web", "clicks")):
        catalog.create_namespace(namespace)
        catalog.create_table(f"{namespace}.{name}", pa.schema({"x": pa.int64()}))
    for key, value in properties_in(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper()}", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("lake")
def test_a_catalog_lists_its_tables_by_names_that_open_them():
    names = zonal.list_tables("lake")
    assert names == ("iceberg:lake.sales.eu.orders", "iceberg:lake.sales.orders", "iceberg:lake.web.clicks")
    for name in names:
        assert len(open_table(name).snapshot().files) == 0
    assert zonal.list_tables() == tuple(name.replace("lake.", "") for name in names), "the only one is the default"


def test_a_catalog_of_options_alone_has_no_name_in_tables(lake):
    assert zonal.list_tables("lake", storage_options=properties_in(lake))[0] == "iceberg:sales.eu.orders"


@pytest.mark.usefixtures("lake")
def test_the_command_prints_one_name_per_line():
    done = CliRunner().invoke(app, ["tables", "lake"])
    assert done.output.splitlines()[1:] == ["iceberg:lake.sales.orders", "iceberg:lake.web.clicks"]
    printed = CliRunner().invoke(app, ["tables", "lake", "--output", "json"]).output
    assert json.loads(printed) == [*zonal.list_tables("lake")]


@pytest.mark.usefixtures("lake")
def test_a_name_may_begin_with_its_catalog():
    assert split_catalog("lake.web.clicks", None) == ("web.clicks", "lake")
    assert split_catalog("lake.web.clicks", "lake") == ("lake.web.clicks", "lake"), "it is given already"
    assert split_catalog("sales.eu.orders", None) == ("sales.eu.orders", None), "no catalog is called so"
    assert split_catalog("lake.clicks", None) == ("lake.clicks", None), "a namespace may have a catalog's name"
    assert open_destination("iceberg:lake.web.copy").name == "web.copy"


@pytest.mark.usefixtures("lake")
def test_an_unknown_catalog_is_answered_with_the_nearest():
    with pytest.raises(TableError, match=r"Unknown catalog 'lak'\. Did you mean 'lake'"):
        zonal.list_tables("lak")
    with pytest.raises(TableError, match="Unknown storage option 'urii'"):
        zonal.list_tables("lake", storage_options={"urii": "x"})


# --- options of verbs ------------------------------------------------------------------------------------------------

VERBS = {
    "show": lambda name, **options: zonal.show(name, **options).table.files,
    "explain": lambda name, **options: len(zonal.explain(name, where="id >= 0", **options).files),
    "prune": lambda name, **options: len(zonal.prune(name, where="id >= 0", **options)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_take_a_catalog_and_options_whose_values_stand_elsewhere(verb, tmp_path, monkeypatch):
    home = Iceberg(tmp_path).make([telemetry(10)])
    (tmp_path / "warehouse.txt").write_text(f"{home.properties['warehouse']}\n")
    monkeypatch.setenv("LAKE_URI", home.properties["uri"])
    monkeypatch.setenv("HOME", str(tmp_path))
    options = {"uri": "@env:LAKE_URI", "warehouse": f"@file:{tmp_path}/warehouse.txt"}
    assert VERBS[verb](home.name, catalog="test", storage_options=options) == 1
    with pytest.raises(TableError, match=r"Unknown storage option 'warehous'\. Did you mean 'warehouse'"):
        VERBS[verb](home.name, catalog="test", storage_options=options | {"warehous": "x"})


@pytest.mark.usefixtures("lake")
def test_the_only_configured_catalog_is_the_default_of_verbs(monkeypatch):
    assert zonal.show("iceberg:web.clicks").table.files == 0
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", "sqlite:////nowhere/else.db")
    with pytest.raises(TableError, match=r"Several Iceberg catalogs are configured: 'lake', 'other'"):
        zonal.show("iceberg:web.clicks")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("aws_acess_key_id", "aws_access_key_id"), ("google_service_acount", "google_service_account"),
        ("azure_storage_acount_key", "azure_storage_account_key"), ("s3.endpont", "s3.endpoint"),
    ],
)  # fmt: skip
def test_an_unknown_option_is_answered_with_the_nearest(name, nearest):
    with pytest.raises(TableError, match=f"Unknown storage option '{name}'. Did you mean '{nearest}'"):
        zonal.show("delta:s3://box/t", storage_options={name: "x"})
