"""Tables in object stores for tests of `cluster`: made and read by the formats' own libraries."""

from deltalake import DeltaTable

from support.cluster_tables import Delta, Home, Iceberg
from support.iceberg_positions import Positioned


class StoredHome(Home):
    """Where a table of one format lives in a bucket.

    `server` has the bucket's `place`, `objects()` and `uploads()` without an end, and the options of zonal (`options`),
    delta-rs (`theirs`) and PyIceberg (`properties`).
    """

    @property
    def top(self):
        """The table's folder in the bucket."""
        return self.place.removeprefix(self.server.place)

    def everything(self):
        """All objects of the bucket but those in quarantine, with their content."""
        return self.server.content(lambda key: "_zonal_quarantine/" not in key)

    def quarantined(self):
        """The names of objects in quarantine, by run."""
        found, folder = {}, f"{self.top}/_zonal_quarantine/"
        for key in self.server.objects():
            if key.startswith(folder):
                run, _, name = key.removeprefix(folder).partition("/")
                found.setdefault(run, []).append(name)
        return found

    def leftovers(self):
        """Objects of runs that no version has, empty ones in place of folders, and uploads without an end."""
        known = self.ever()
        found = self.server.objects()
        strays = [key for key in found if "/zonal-" in f"/{key}" and key not in known]
        hidden = [key for key in found if key.endswith(("/", ".tmp"))]
        return [*strays, *hidden, *self.server.uploads()]


class StoredDelta(StoredHome, Delta):
    """A Delta table, by deltalake."""

    def __init__(self, server, name="t"):
        self.server, self.table_name = server, name

    @property
    def location(self):
        return f"{self.server.place}{self.table_name}"

    place = location

    @property
    def options(self):
        return {"storage_options": self.server.options}

    @property
    def theirs(self):
        return self.server.theirs

    def ever(self):
        versions = range(self.version() + 1)
        tables = (DeltaTable(self.location, version=each, storage_options=self.theirs) for each in versions)
        return {uri.removeprefix(self.server.place) for table in tables for uri in table.file_uris()}


class StoredIceberg(StoredHome, Iceberg):
    """An Iceberg table in a SQLite catalog whose warehouse is in a bucket, by PyIceberg."""

    def __init__(self, server, folder, name="t", *, version=2):
        self.server = server
        super().__init__(folder, name, version=version)

    @property
    def place(self):
        return self.table.location()

    @property
    def properties(self):
        return {
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"{self.server.place}warehouse",
            **self.server.properties,
        }

    @property
    def options(self):
        """The catalog's properties without the class by which only PyIceberg is to open files."""
        given = {name: value for name, value in self.properties.items() if name != "py-io-impl"}
        return {"catalog": "test", "storage_options": given}

    def ever(self):
        return {path.removeprefix(self.server.place) for path in self.paths_ever()}


class StoredPositioned(StoredIceberg, Positioned):
    """A table of which another writer deletes rows by position, with its delete files in the bucket, too."""

    @property
    def data_folder(self):
        return f"{self.place}/data"

    def strays(self):
        return self.leftovers()

    def stored_deletes(self):
        return [key for key in self.server.objects() if "/zonal-" in key and "/deletes-" in key]


def stored_home(kind, server, folder, name="t"):
    """`delta`, or `iceberg v1` and `iceberg v2`, whose catalog is in a folder."""
    if kind == "delta":
        return StoredDelta(server, name)
    return StoredIceberg(server, folder, name, version=int(kind[-1]))
