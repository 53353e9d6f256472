"""The official engines: they make tables by SQL and tell what they see in them.

`make` runs this file in a process of its own, with recipes and answers as JSON; `both_engines` is a session of both
engines in the caller's process. Conditions are judged as columns of a query without a WHERE: no engine's own skipping
is in the answers.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import unquote

TIMEOUT = 900
NEWEST = ""
"""The version that a table has at the end."""


@dataclass(frozen=True)
class Recipe:
    """A table: SQL statements in which `{t}` stands for its name, and conditions that skipping is judged by."""

    name: str
    statements: Sequence[str]
    conditions: Sequence[str]
    older: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further versions with their conditions: a Delta version, the number of an Iceberg snapshot, a branch, a tag."""

    def versions(self) -> dict[str, Sequence[str]]:
        """Return the conditions of every version that is looked at."""
        return {NEWEST: self.conditions, **self.older}


@dataclass(frozen=True)
class Ends:
    """The least and the greatest value of a column in a file, and how many values are neither."""

    nulls: int
    nans: int
    least: str | float | None
    greatest: str | float | None
    """Text and binary as hexadecimal digits, decimals as text, points in time as numbers."""


@dataclass(frozen=True)
class Seen:
    """One version of a table, as the engine sees it. Everything that has files as keys uses their full locations."""

    version: int
    schema: str
    """Spark's own JSON."""
    files: list[str]
    live_rows: dict[str, int]
    """Rows by file, deleted ones left out; files with none are missing."""
    matching: dict[str, list[str]]
    """By condition: the files with a row for which it is true."""
    ends: dict[str, dict[str, Ends]]
    """By column (struct leaves by dotted path), then by file."""
    added_by: dict[str, int]
    operations: dict[str, str]
    """By version or snapshot."""
    records: dict[str, int]
    """Rows by file, deleted ones included; empty where the engine doesn't tell."""
    delete_files: dict[str, int]
    """Delete files that have a row of a data file; empty where the engine doesn't tell."""


Made = dict[str, dict[str, Seen] | str]
"""By table: what is seen in each version, or why the table couldn't be made."""


def make(engine: str, recipes: Sequence[Recipe], *, folder: Path, jars: Sequence[Path]) -> Made:
    """Make the tables below `folder` and return what the engine sees in them."""
    asked, answered = folder / "recipes.json", folder / "seen.json"
    asked.write_text(json.dumps([asdict(recipe) for recipe in recipes]))
    command = [sys.executable, __file__, engine, str(folder), os.pathsep.join(map(str, jars))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if ran.returncode:
        raise RuntimeError(f"The {engine} process failed:\n{ran.stderr[-3000:]}")
    answers = json.loads(answered.read_text())
    return {name: found if isinstance(found, str) else _versions(found) for name, found in answers.items()}


def seen_in(made: Made, name: str, version: str) -> Seen:
    """Return what the engine sees in a version, or fail with the reason why there is none."""
    found = made[name]
    assert not isinstance(found, str), found
    return found[version]


def _versions(answers):
    return {version: Seen(**{**seen, "ends": _ends_of(seen["ends"])}) for version, seen in answers.items()}


def _ends_of(answers):
    return {name: {path: Ends(**ends) for path, ends in files.items()} for name, files in answers.items()}


# --- in the engine's process -----------------------------------------------------------------------------------------

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Hundreds of small queries: compiling them well would take longer than running them.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Tables of a few kilobytes, that are many files all the same after OPTIMIZE.
    "spark.databricks.delta.optimize.maxFileSize": "16000",
    "spark.databricks.delta.optimize.minFileSize": "16000",
}


def _iceberg(folder):
    return {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "spark.sql.catalog.ice.uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
        "spark.sql.catalog.ice.jdbc.schema-version": "V1",
        "spark.sql.catalog.ice.warehouse": f"file://{folder / 'warehouse'}",
        "spark.sql.catalog.ice.cache-enabled": "false",
    }


def both_engines(folder: Path, jars: Sequence[Path]):
    """Start both engines in one session of this process: Delta tables by path, Iceberg tables in the catalog `ice`."""
    delta, iceberg = _DELTA, _iceberg(folder)
    settings = {
        **delta,
        **iceberg,
        "spark.sql.extensions": ",".join(one["spark.sql.extensions"] for one in (delta, iceberg)),
        # Plans that don't change while they run: what a scan counted can be looked up in them.
        "spark.sql.adaptive.enabled": "false",
        # Tasks in which VACUUM lists folders.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    spark = _session(folder, os.pathsep.join(map(str, jars)), settings)
    spark.sql("CREATE NAMESPACE ice.db")
    return spark


def run_iceberg(spark, statement: str) -> None:
    """Run SQL, but add columns with a default by the Java API: Iceberg refuses them in Spark's SQL."""
    if not (found := re.fullmatch(r"ALTER TABLE (\S+) ADD COLUMN (\w+) (int|string) DEFAULT '?(\w+)'?", statement)):
        spark.sql(statement)
        return
    name, column, kind, default = found.groups()
    iceberg = spark._jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    types = iceberg.types.Types
    java_type = types.IntegerType.get() if kind == "int" else types.StringType.get()
    value = iceberg.expressions.Literal.of(int(default) if kind == "int" else default)
    table.updateSchema().addColumn(column, java_type, value).commit()


class _Delta:
    """delta-spark: tables are folders. `_metadata.file_path` is percent-encoded, and `inputFiles()` is not."""

    file = "_metadata.file_path"

    def __init__(self, folder, jars):
        self.folder = folder
        self._histories = {}
        self.spark = _session(folder, jars, _DELTA)

    def name(self, table):
        return f"delta.`{self.folder / table}`"

    def run(self, statement):
        self.spark.sql(statement)

    def location(self, path):
        return "/" + unquote(path.removeprefix("file:")).lstrip("/")

    def source(self, table, version):
        return self.name(table) + (f" VERSION AS OF {version}" if version != NEWEST else "")

    def _history(self, table):
        """Return the operation and the files of every version."""
        if table in self._histories:
            return self._histories[table]
        history = self.spark.sql(f"DESCRIBE HISTORY {self.name(table)}").collect()
        operations = {row.version: row.operation for row in history}
        reader = self.spark.read.format("delta")
        files = [[]]
        for at in range(1, max(operations) + 1):
            changed = operations[at] in ("WRITE", "DELETE", "UPDATE", "OPTIMIZE")
            frame = reader.option("versionAsOf", at).load(str(self.folder / table)) if changed else None
            files.append(files[-1] if frame is None else frame.inputFiles())
        told = self.spark.sql(f"DESCRIBE DETAIL {self.name(table)}").first().numFiles
        assert told == len(files[-1]), f"DESCRIBE DETAIL of {table} tells {told} files, inputFiles() {len(files[-1])}"
        found = [["/" + path.removeprefix("file:").lstrip("/") for path in paths] for paths in files]
        self._histories[table] = operations, found
        return operations, found

    def metadata(self, table, version):
        operations, files = self._history(table)
        number = max(operations) if version == NEWEST else int(version)
        added_by = {}
        for at, paths in enumerate(files[: number + 1]):
            added_by = {path: added_by.get(path, at) for path in paths}
        return {
            "version": number,
            "files": files[number],
            "added_by": added_by,
            "operations": {str(at): operation for at, operation in operations.items() if at <= number},
            "records": {},
            "delete_files": {},
        }


class _Iceberg:
    """Iceberg's Spark runtime, with a catalog in SQLite that PyIceberg reads as well."""

    file = "_file"

    def __init__(self, folder, jars):
        self.spark = _session(folder, jars, _iceberg(folder))
        self.spark.sql("CREATE NAMESPACE ice.db")

    def name(self, table):
        return f"ice.db.{table}"

    def run(self, statement):
        run_iceberg(self.spark, statement)

    def location(self, path):
        return path

    def _as_of(self, table, version):
        """A decimal version is the number of a snapshot, from 0; others are branches and tags."""
        if not version.isdecimal():
            return f" VERSION AS OF '{version}'" if version != NEWEST else ""
        snapshots = self.spark.sql(f"SELECT snapshot_id FROM {self.name(table)}.snapshots ORDER BY committed_at")
        return f" VERSION AS OF {snapshots.collect()[int(version)].snapshot_id}"

    def source(self, table, version):
        return self.name(table) + self._as_of(table, version)

    def metadata(self, table, version):
        name, as_of = self.name(table), self._as_of(table, version)
        entries = self.spark.sql(
            "SELECT snapshot_id, data_file.file_path AS path, data_file.record_count AS records "
            f"FROM {name}.entries{as_of} WHERE status < 2 AND data_file.content = 0"
        ).collect()
        snapshots = self.spark.sql(f"SELECT snapshot_id, operation FROM {name}.snapshots").collect()
        refs = {row.name: row.snapshot_id for row in self.spark.sql(f"SELECT * FROM {name}.refs").collect()}
        number = int(as_of.split()[-1]) if version.isdecimal() else refs[version or "main"]
        deletes = []
        if version == NEWEST:
            deletes = self.spark.sql(
                "SELECT file_path, count(DISTINCT delete_file_path) AS files "
                f"FROM {name}.position_deletes GROUP BY file_path"
            ).collect()
        return {
            "version": number,
            "files": [entry.path for entry in entries],
            "added_by": {entry.path: entry.snapshot_id for entry in entries},
            "operations": {str(row.snapshot_id): row.operation for row in snapshots},
            "records": {entry.path: entry.records for entry in entries},
            "delete_files": {row.file_path: row.files for row in deletes},
        }


def _session(folder, jars, settings):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from zonal.spark.java import use_java

    use_java()
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(folder / "spark"))
    for key, value in {**_SETTINGS, **settings, "spark.jars": jars.replace(os.pathsep, ",")}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _answer(engine, recipe):
    """Make a table and look at it; one that can't be made leaves the others alone."""
    try:
        for statement in recipe.statements:
            engine.run(statement.replace("{t}", engine.name(recipe.name)))
        return {version: _look(engine, recipe, version) for version in recipe.versions()}
    except Exception as error:
        return f"{recipe.name} failed with {type(error).__name__}: {str(error)[:1000]}"


def _look(engine, recipe, version):
    conditions = recipe.versions()[version]
    source = engine.source(recipe.name, version)
    schema = engine.spark.sql(f"SELECT * FROM {source}").schema
    leaves = list(_leaves(schema))
    truths = [f"coalesce(bool_or({condition}), false) AS c{at}" for at, condition in enumerate(conditions)]
    ends = [_ends(*leaf) for leaf in leaves]
    selected = ", ".join([f"{engine.file} AS file", "count(*) AS rows", *truths, *ends])
    found = engine.spark.sql(f"SELECT {selected} FROM {source} GROUP BY {engine.file}").collect()
    rows = {engine.location(row.file): row for row in found}
    first = 2 + len(truths)
    return {
        **engine.metadata(recipe.name, version),
        "schema": schema.json(),
        "live_rows": {path: row.rows for path, row in rows.items()},
        "matching": {
            condition: [path for path, row in rows.items() if row[2 + at]] for at, condition in enumerate(conditions)
        },
        "ends": {
            name: {path: asdict(Ends(*row[first + at])) for path, row in rows.items()}
            for at, (name, _, _) in enumerate(leaves)
        },
    }


_TO_JSON = {
    "string": "hex({}(cast({} AS binary)))",
    "binary": "hex({}({}))",
    "date": "unix_date({}({}))",
    "timestamp": "unix_micros({}({}))",
    "timestamp_ntz": "unix_micros(cast({}({}) AS timestamp))",
    "decimal": "cast({}({}) AS string)",
    "float": "cast({}(if(isnan({}), NULL, {})) AS double)",
    "boolean": "cast({}({}) AS int)",
}


def _leaves(struct, names=(), above="") -> Iterator[tuple[str, str, str]]:
    """Yield name, SQL and type of everything that has one value per row."""
    for part in struct.fields:
        sql = f"{above}`{part.name}`"
        kind = part.dataType.typeName()
        if kind == "struct":
            yield from _leaves(part.dataType, (*names, part.name), f"{sql}.")
        elif kind not in ("array", "map", "variant"):
            yield ".".join((*names, part.name)), sql, kind


def _ends(_name, column, kind):
    is_float = kind in ("float", "double")
    template = _TO_JSON.get("float" if is_float else kind, "{}({})")
    least, greatest = (template.format(end, *[column] * 2) for end in ("min", "max"))
    nans = f"count_if(isnan({column}))" if is_float else "0"
    return f"struct(count_if({column} IS NULL), {nans}, {least}, {greatest})"


def main() -> None:
    """Answer the recipes of a folder."""
    kind, folder, jars = sys.argv[1:]
    engine = {"delta": _Delta, "iceberg": _Iceberg}[kind](Path(folder), jars)
    recipes = [Recipe(**recipe) for recipe in json.loads((Path(folder) / "recipes.json").read_text())]
    answers = {recipe.name: _answer(engine, recipe) for recipe in recipes}
    (Path(folder) / "seen.json").write_text(json.dumps(answers))
    engine.spark.stop()


if __name__ == "__main__":
    main()
