"""The ways to keep a growing table that are compared: zonal within budgets, the official engines, never and always."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.growth.stream import NAMES
from benchmarks.growth.tables import CATALOG, CODEC, DeltaTable, GrowingTable, IcebergTable, LiquidTable
from benchmarks.rewriters.jars import jars
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.scope import Scope
from zonal.spark.place import HERE, Spark
from zonal.verbs.cluster import cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize"
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Hundreds of small statements: compiling them well would take longer than running them."""
SMALL_CUBE = 8
"""Files of the smallest cube, where cubes suit the table."""


@dataclass(frozen=True)
class Place:
    """Where the tables are, and how large their files shall be; Spark starts when an engine first needs it."""

    folder: Path
    target: int

    @cached_property
    def spark(self) -> "SparkSession":
        """Start one session with both engines."""
        from benchmarks.rewriters.spark_session import session  # noqa: PLC0415 - zonal alone needs no Spark

        delta, iceberg = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.iceberg.spark.extensions"
        catalog = f"spark.sql.catalog.{CATALOG}"
        settings = {
            "spark.jars": ",".join(str(jar) for engine in ("delta", "iceberg") for jar in jars(engine)),
            "spark.sql.extensions": f"{delta},{iceberg}.IcebergSparkSessionExtensions",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.parquet.compression.codec": CODEC,
            **QUICK,
            "spark.databricks.delta.optimize.maxFileSize": str(self.target),
            "spark.databricks.delta.optimize.minFileSize": str(self.target),
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            f"{catalog}.uri": f"jdbc:sqlite:{self.folder / 'catalog.db'}",
            f"{catalog}.jdbc.schema-version": "V1",
            f"{catalog}.warehouse": f"file://{self.folder / 'warehouse'}",
            f"{catalog}.cache-enabled": "false",  # PyIceberg appends beside it
        }
        return session(self.folder, settings=settings)

    def stop(self) -> None:
        """Stop the session, where one was started."""
        if "spark" in vars(self):
            self.spark.stop()


Step = Callable[[GrowingTable, Place], None]


@dataclass(frozen=True)
class Policy:
    """How a table is clustered first, and what is done after appends."""

    name: str
    title: str
    format: str
    first: Step
    keep: Step

    def table(self, place: Place, name: str) -> GrowingTable:
        """Return a table that has no rows yet."""
        unique = f"{self.name}_{name}".replace("-", "_")
        if self.format == "iceberg":
            return IcebergTable(place.folder, unique)
        return (LiquidTable if self.name.startswith("liquid") else DeltaTable)(place.folder / unique)


def zonal(table: GrowingTable, place: Place, *, scope: Scope) -> None:
    """Let zonal do what is due, in threads of this process."""
    files, by = NewFiles(target_file_size=place.target), list(NAMES)
    cluster(table.opened(), by=by, layout="zorder", scope=scope, files=files, spark=Spark(master=HERE))


def nothing(table: GrowingTable, place: Place) -> None:
    """Leave the table alone."""


def declared(table: GrowingTable, place: Place, *, optimize: Step) -> None:
    """Make a Delta table a liquid one, and cluster it."""
    arrive(table, place)
    place.spark.sql(f"ALTER TABLE {table.location} CLUSTER BY ({', '.join(NAMES)})")
    optimize(table, place)


def arrive(table: GrowingTable, place: Place) -> None:
    """Append the parts that wait, in one commit."""
    assert isinstance(table, LiquidTable)
    if parts := [str(part) for part in table.waiting]:
        place.spark.read.parquet(*parts).write.format("delta").mode("append").save(str(table.folder))
        for part in table.waiting:
            part.unlink()


def liquid(table: GrowingTable, place: Place, *, cube: int | None = None) -> None:
    """Cluster what Delta finds due, with cubes of 100 GB (Delta's default) or of some files."""
    arrive(table, place)
    for name, files in ((f"{CUBE}.threshold", cube), (f"{CUBE}.targetCubeSize", cube and cube * 3 // 2)):
        if files is None:
            place.spark.conf.unset(name)
        else:
            place.spark.conf.set(name, str(files * place.target))
    place.spark.sql(f"OPTIMIZE {table.location}").collect()


def rewrite_data_files(table: GrowingTable, place: Place, *, everything: bool) -> None:
    """Call Iceberg's procedure, with its own choice of files or for all of them."""
    options = {"target-file-size-bytes": str(place.target)} | ({"rewrite-all": "true"} if everything else {})
    listed = ", ".join(f"'{word}'" for pair in options.items() for word in pair)
    place.spark.sql(
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{table.location.partition('.')[2]}', strategy => 'sort', "
        f"sort_order => 'zorder({', '.join(NAMES)})', options => map({listed}))"
    ).collect()


FULL = partial(zonal, scope=Scope(full=True))
ALL_FILES = partial(rewrite_data_files, everything=True)
SMALL = partial(liquid, cube=SMALL_CUBE)
BUDGETS = (2, 3)
ALWAYS = Policy("always", "always (`zonal cluster --full`)", "delta", FULL, FULL)
"""The yardstick: what it leaves is a fresh clustering."""
ALL = (
    ALWAYS,
    Policy("never", "never", "delta", FULL, nothing),
    *(
        Policy(
            f"zonal-{format_}-{budget}",
            f"zonal, {title}, `--max-amplification {budget}`",
            format_,
            FULL,
            partial(zonal, scope=Scope(max_amplification=budget)),
        )
        for format_, title in (("delta", "Delta"), ("iceberg", "Iceberg"))
        for budget in BUDGETS
    ),
    Policy("liquid", "Delta liquid, `OPTIMIZE`", "delta", partial(declared, optimize=liquid), liquid),
    Policy(
        "liquid-small", f"Delta liquid, cubes of {SMALL_CUBE} files", "delta", partial(declared, optimize=SMALL), SMALL
    ),
    Policy(
        "rewrite",
        "Iceberg `rewrite_data_files`, zorder",
        "iceberg",
        ALL_FILES,
        partial(rewrite_data_files, everything=False),
    ),
    Policy("rewrite-all", "Iceberg `rewrite_data_files`, zorder, `rewrite-all`", "iceberg", ALL_FILES, ALL_FILES),
)
DEFAULT = "zonal-delta-3", "zonal-iceberg-3"
"""What zonal does without options."""
