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
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from zonal.snapshot import UNKNOWN, Bounds, Snapshot
from zonal.verbs.explain import explain, prune

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


# --- a table of all types --------------------------------------------------------------------------------------------

_PREFIX = "forty characters that all texts begin with"

# One row a day from 1968-08-19, so that both sides of 1970 are there. Eight tasks write 375 rows each.
TYPE_ROWS = f"""
    SELECT id,
        cast(id * 7919 % 10007 - 5000 AS int) AS i,
        id * id * 1000003 - 5000000000 AS l,
        cast(if(id = 0, '-Infinity', if(id = 2999, 'Infinity', id / 3.0 - 400)) AS float) AS f,
        if(id % 400 = 7, double('NaN'), if(id = 1000, -0.0D, id * 1.1D - 1100)) AS d,
        if(id < 375, double('NaN'), id + 0.1D) AS first_file_all_nan,
        cast(id - 1000.25 AS decimal(10, 2)) AS m,
        cast(id * 1234567890123456789012.3457BD AS decimal(30, 4)) AS w,
        concat(chr(97 + id div 120), '-', id) AS s,
        concat('{_PREFIX}', lpad(id, 6, '0')) AS long_text,
        concat(substr('zé漢😀', 1 + cast(id div 750 AS int), 1), repeat('😀', 40), lpad(id, 6, '0')) AS wide_text,
        date_add(DATE'1968-08-19', cast(id AS int)) AS dt,
        timestamp_micros((id - 500) * 86400000000 + 123456) AS ts,
        cast(timestamp_micros((id - 500) * 86400000000 + 999999) AS timestamp_ntz) AS n,
        id < 1500 AS b,
        unhex(concat(repeat('ff', 20), lpad(hex(id), 8, '0'))) AS bin,
        named_struct(
            'x', cast(-id AS int), 'y', if(id % 7 = 0, NULL, concat('y', id)), 'in', named_struct('z', id)
        ) AS st,
        if(id < 375 OR id < 1500 AND id % 3 = 0, NULL, cast(id AS int)) AS some_nulls,
        array(id) AS many,
        map('k', id) AS pairs
    FROM range(0, 3000, 1, 8)"""
TYPE_COLUMNS = """
    id bigint, i int, l bigint, f float, d double, first_file_all_nan double, m decimal(10, 2),
    w decimal(30, 4), s string, long_text string, wide_text string, dt date, ts timestamp, n timestamp_ntz, b boolean,
    bin binary, st struct<x: int, y: string, in: struct<z: bigint>>, some_nulls int, many array<bigint>,
    pairs map<string, bigint>"""
TYPE_CONDITIONS = (
    "id = 1234",
    "id BETWEEN 700 AND 720 AND i > 0",
    "id IN (5, 1499, 2999)",
    "NOT (id < 2900)",
    "id <=> 5",
    "i <> 5",
    "l >= 8000000000000",
    "f < -350",
    "f = float('Infinity')",
    "d > 2000",
    "d >= double('NaN')",
    "d = 0",
    "d < -1000 OR d > 1e300",
    "first_file_all_nan > 100000",
    "first_file_all_nan < 400",
    "first_file_all_nan = double('NaN')",
    "m = 12.75",
    "m IN (-1000.25, 1998.75)",
    "m > 1.9e3",
    "w = 1234567890123456789012.3457",
    "w > 3702469102480246910248024.7354",
    "s LIKE 'c-%'",
    "s IN ('a-5', 'y-2990')",
    "s > 'x' AND s < 'y'",
    f"long_text = '{_PREFIX}001000'",
    f"long_text > '{_PREFIX}002990'",
    f"long_text LIKE '{_PREFIX}0001%'",
    f"long_text <= '{_PREFIX}000001'",
    "wide_text LIKE 'é%'",
    "wide_text > '漢'",
    "wide_text >= '😀'",
    "dt = DATE'1970-01-01'",
    "dt < '1969-01-01'",
    "year(dt) = 1971",
    "year(ts) = 1970",
    "date(ts) = '1969-12-31'",
    "ts >= TIMESTAMP'1976-11-01 00:00:00'",
    "ts = TIMESTAMP'1970-01-01 00:00:00.123456'",
    "ts <= '1968-08-19 00:00:00.123456'",
    "date_trunc('month', ts) = '1971-03-01'",
    "n < TIMESTAMP_NTZ'1968-09-01 00:00:00'",
    "n = TIMESTAMP_NTZ'1970-01-01 00:00:00.999999'",
    "b",
    "NOT b",
    "b = true AND id > 1400",
    f"bin = X'{'FF' * 20}000003E8'",
    f"bin >= X'{'FF' * 20}00000BB0'",
    "st.x = -77",
    "st.y = 'y2000'",
    "st.y IS NULL",
    "st.in.z > 2990",
    "st.x < -2990 OR s = 'a-5'",
    "some_nulls IS NULL",
    "some_nulls IS NOT NULL",
    "some_nulls IS NOT NULL AND id < 800",
    "some_nulls NOT IN (1, 2)",
    "some_nulls > 2990",
)


# --- compared with zonal ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """The files that zonal keeps for each condition, and those of them that it must keep."""

    wrongly_skipped: dict[str, list[str]]
    kept: int
    matching: int
    total: int


def kept_files(table, seen: Seen, *, dialect: str = "spark") -> Kept:
    """Prune by every condition, and note where a file with a matching row is not kept."""
    kept = {condition: set(prune(table, where=condition, dialect=dialect)) for condition in seen.matching}
    lost = {condition: sorted(set(files) - kept[condition]) for condition, files in seen.matching.items()}
    return Kept(
        wrongly_skipped={condition: files for condition, files in lost.items() if files},
        kept=sum(len(files) for files in kept.values()),
        matching=sum(len(files) for files in seen.matching.values()),
        total=len(kept) * len(seen.files),
    )


def row_groups_lost(table, seen: Seen, *, dialect: str = "spark") -> dict[str, list[str]]:
    """Return, by condition, the files with a matching row of which no row group is left, or which have no footer."""
    lost = {}
    for condition, files in seen.matching.items():
        explained = explain(table, where=condition, dialect=dialect, footers=True, bloom=True)
        read = {file.path for file in explained.files if file.row_groups}
        if not set(files) <= read:
            lost[condition] = sorted(set(files) - read)
    return lost


def columns_of_other_types(snapshot: Snapshot, seen: Seen) -> list[str]:
    """Return the columns whose type, or place, is not the engine's."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    expected = to_arrow_schema(StructType.fromJson(json.loads(seen.schema)))
    pairs = zip_longest(snapshot.schema, expected, fillvalue=pa.field("nothing", pa.null()))
    return [f"{one} is {other}" for one, other in pairs if one.name != other.name or not _same(one.type, other.type)]


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Compare types without the names and nullability of what lists and maps hold."""
    if pa.types.is_struct(one) and pa.types.is_struct(other) and one.names != other.names:
        return False
    if pa.types.is_nested(one) and one.id == other.id and one.num_fields == other.num_fields:
        return all(_same(one.field(at).type, other.field(at).type) for at in range(one.num_fields))
    return one == other


def values_beyond_bounds(snapshot: Snapshot, seen: Seen) -> Iterator[str]:
    """Yield a sentence for every bound and count that the engine's own values contradict."""
    paths = snapshot.files.paths.to_pylist()
    for source, columns in (("bounds", snapshot.files.bounds), ("partition", snapshot.files.partition_bounds)):
        for name in columns:
            if name in seen.ends:
                for path, told in zip(paths, _told(columns[name]), strict=True):
                    ends = seen.ends[name].get(path)
                    if ends is not None and (wrong := _contradiction(told, ends, columns[name].lower.type)):
                        yield f"{source} of {name} in {path}: {wrong}; the engine sees {ends}"


def _told(bounds: Bounds) -> Iterator[tuple[object, object, int, int]]:
    lower, upper = (_numbers(side).to_pylist() for side in (bounds.lower, bounds.upper))
    return zip(lower, upper, bounds.nulls.tolist(), bounds.nans.tolist(), strict=True)


def _numbers(values: pa.Array) -> pa.Array:
    is_time = pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)
    return values.cast(pa.int64() if values.type.bit_width == 64 else pa.int32()) if is_time else values


def _contradiction(told, ends: Ends, kind: pa.DataType) -> str | None:
    lower, upper, nulls, nans = told
    least, greatest = (_value(end, kind) for end in (ends.least, ends.greatest))
    if lower is not None and least is not None and lower > least:
        return f"the lower bound is {lower!r}"
    if upper is not None and greatest is not None and upper < greatest:
        return f"the upper bound is {upper!r}"
    # Deleted rows are in the counts of the metadata, and not in those of the engine.
    if UNKNOWN < nulls < ends.nulls or UNKNOWN < nans < ends.nans:
        return f"nulls are {nulls}, NaNs {nans}"
    return None


def _value(end: str | float | None, kind: pa.DataType) -> object:
    if not isinstance(end, str):
        return end
    return Decimal(end) if pa.types.is_decimal(kind) else bytes.fromhex(end)


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
    """Yield name, SQL and type of everything that has one value a row."""
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
