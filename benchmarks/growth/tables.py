"""Growing tables: appends by plain writers, and the bytes that their own logs say were appended and rewritten."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import WriterProperties, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from zonal import open_table
from zonal.tables.protocol import Table

CATALOG, NAMESPACE = "ice", "bench"
CODEC = "zstd"


@dataclass(frozen=True)
class Written:
    """Bytes of the data files that commits added: those that only add, and those that replace files."""

    appended: int
    rewritten: int

    def __sub__(self, before: "Written") -> "Written":
        return Written(self.appended - before.appended, self.rewritten - before.rewritten)


class GrowingTable(Protocol):
    """A table that receives parts."""

    @property
    def location(self) -> str:
        """Return the name that its engine has for it in SQL."""

    def append(self, rows: pa.Table) -> None:
        """Add a file with these rows in the order in which they come."""

    def opened(self) -> Table:
        """Open the newest version with zonal."""

    def written(self) -> Written:
        """Add up all commits so far."""


@dataclass(frozen=True)
class DeltaTable:
    """A Delta table in a folder, which delta-rs appends to."""

    folder: Path

    @property
    def location(self) -> str:
        """Return the table by its path."""
        return f"delta.`{self.folder}`"

    def append(self, rows: pa.Table) -> None:
        """Add one file, in the codec that the other engines write."""
        properties = WriterProperties(compression="ZSTD")
        write_deltalake(self.folder, rows, mode="append", writer_properties=properties)

    def opened(self) -> Table:
        """Open the folder."""
        return open_table(f"delta:{self.folder}")

    def written(self) -> Written:
        """Read every commit of the log; one that removes a file is a rewrite."""
        appended = rewritten = 0
        for log in (self.folder / "_delta_log").glob("*.json"):
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            size = sum(action["add"]["size"] for action in actions if "add" in action)
            if any("remove" in action for action in actions):
                rewritten += size
            else:
                appended += size
        return Written(appended, rewritten)


@dataclass(frozen=True)
class LiquidTable(DeltaTable):
    """A Delta table with liquid clustering, which delta-rs refuses: parts wait as Parquet files for Spark."""

    @property
    def waiting(self) -> list[Path]:
        """List the parts that wait."""
        return sorted(self._parts.glob("*.parquet"))

    @property
    def _parts(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}_parts")

    def append(self, rows: pa.Table) -> None:
        """Put a part beside the table."""
        self._parts.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, self._parts / f"{len(self.waiting):06d}.parquet", compression=CODEC)


@dataclass(frozen=True)
class IcebergTable:
    """An Iceberg table in a catalog on SQLite, which PyIceberg appends to."""

    folder: Path
    """Where the catalog is."""
    name: str

    @property
    def location(self) -> str:
        """Return the table's name with its catalog."""
        return f"{CATALOG}.{self._identifier}"

    @property
    def _identifier(self) -> str:
        return f"{NAMESPACE}.{self.name}"

    def append(self, rows: pa.Table) -> None:
        """Add one file; the first part makes the table."""
        catalog = SqlCatalog(CATALOG, **catalog_properties(self.folder))
        catalog.create_namespace_if_not_exists(NAMESPACE)
        catalog.create_table_if_not_exists(self._identifier, rows.schema).append(rows)

    def opened(self) -> Table:
        """Open it by its catalog."""
        properties = catalog_properties(self.folder)
        return open_table(f"iceberg:{self._identifier}", catalog=CATALOG, storage_options=properties)

    def written(self) -> Written:
        """Read the summary of every snapshot; one that removes a file is a rewrite."""
        table = SqlCatalog(CATALOG, **catalog_properties(self.folder)).load_table(self._identifier)
        sizes = {"append": 0, "other": 0}
        for snapshot in table.metadata.snapshots:
            assert snapshot.summary is not None
            kind = "append" if snapshot.summary.operation.value == "append" else "other"
            sizes[kind] += int(snapshot.summary["added-files-size"] or 0)
        return Written(sizes["append"], sizes["other"])


def catalog_properties(folder: Path) -> dict[str, str]:
    """Return PyIceberg's properties of a catalog, which Java's JDBC catalog shares."""
    return {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}", "warehouse": f"file://{folder / 'warehouse'}"}
