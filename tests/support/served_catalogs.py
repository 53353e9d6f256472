"""Iceberg tables in catalogs that a server keeps, by PyIceberg."""

from pyiceberg.catalog import load_catalog

from support.cluster_tables import Iceberg
from support.s3_server import KEYS


class Served(Iceberg):
    """A table in a catalog with these properties; its writer may open another catalog that has it, too."""

    def __init__(self, properties, writer=None):
        self._properties = properties
        self.table_name, self.format_version = "t", 2
        self.catalog = load_catalog("theirs", **properties) if writer is None else writer
        self.catalog.create_namespace_if_not_exists("db")

    @property
    def properties(self):
        return self._properties

    @property
    def options(self):
        return {"catalog": "lake", "storage_options": self._properties}


def glue_properties(server):
    """Properties of the Glue catalog that moto serves beside its bucket."""
    keys = {f"glue.{name}": KEYS[f"aws_{name.replace('-', '_')}"] for name in ("access-key-id", "secret-access-key")}
    place = {"glue.endpoint": server.url, "glue.region": "us-east-1", "warehouse": f"{server.place}warehouse"}
    return {"type": "glue", **place, **keys, **server.properties}


def hive_properties(server, folder):
    """Properties of a Hive catalog; waiting for a lock takes moments."""
    waits = {"lock-check-min-wait-time": "0.01", "lock-check-max-wait-time": "0.02"}
    return {"type": "hive", "uri": server.url, "warehouse": f"file://{folder}/warehouse", **waits}
