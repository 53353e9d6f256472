"""Know what each version of Spark lacks, and what takes its place; no other module asks for versions."""

import re
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa

from zonal.errors import ColumnError, ZonalError, option, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Version = tuple[int, int]

OLDEST: Version = 3, 5
"""The oldest version that the tests run on."""
_OWN_SERVERS: Version = 4, 0
"""The first that brings the jar of the Spark Connect server."""
_ARROW_RESULTS: Version = 4, 0
"""The first with `DataFrame.toArrow`."""
_BOUNDED_BATCHES: Version = 4, 0
"""The first that bounds the bytes of a batch, and not only its rows."""
_COLUMN_FUNCTIONS: Version = 4, 1
"""The first with `arrow_udf`, a function of some columns while the others stay in the JVM."""


def check_pyspark(remote: str | None = None, *, otherwise: str = "") -> None:
    """Refuse what needs Spark where pyspark isn't installed, is too old, or can't run on this Python.

    `otherwise` says how to do without Spark.
    """
    try:
        import pyspark  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise ZonalError(f"This needs Spark. Run: pip install 'zonal[spark]'{otherwise}") from None

    check_version(pyspark.__version__, "pyspark")
    if _read(pyspark.__version__) < (4, 0) and find_spec("distutils") is None:
        raise ZonalError(
            f"pyspark {pyspark.__version__} needs distutils, which Python {sys.version_info[0]}.{sys.version_info[1]} "
            "has no more. Run: pip install setuptools. Or update pyspark to 4.0."
        )
    if remote is None:
        return
    if remote.startswith("local") and _read(pyspark.__version__) < _OWN_SERVERS:
        raise ZonalError(
            f"pyspark {pyspark.__version__} can't start a Spark Connect server of its own. Start one, and give its "
            f"address, as sc://HOST; or leave out {option('remote')}."
        )
    if find_spec("grpc") is None:
        raise ZonalError("Spark Connect needs more of pyspark. Run: pip install 'pyspark[connect]'")


def check_version(version: str, what: str) -> None:
    """Refuse a version of Spark that is too old."""
    if _read(version) < OLDEST:
        raise ZonalError(f"{what} has version {version}; zonal needs Spark {_text(OLDEST)} or later. Update it.")


def javas() -> tuple[int, int]:
    """Return the oldest and the newest Java that the installed Spark runs on.

    Spark 3.5 fails on 21, whose `DirectByteBuffer` lacks what its Arrow calls; Spark 4.1 fails on 25, which lacks the
    `Subject.getSubject` that its Hadoop calls.
    """
    try:
        installed = _read(metadata.version("pyspark"))
    except metadata.PackageNotFoundError:
        installed = sys.maxsize, 0
    return (8, 17) if installed < (4, 0) else (17, 24)


def batch_settings(spark: "SparkSession", *, rows: int, size: int) -> Mapping[str, str]:
    """Return settings that bound the batches for workers' Python by rows and bytes.

    Where Spark doesn't count bytes, it fails at a gigabyte: batches then have few rows, however small these are.
    """
    if _of(spark) < _BOUNDED_BATCHES:
        rows = min(rows, 8)
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(rows),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(size),
    }


def collected(df: "DataFrame") -> pa.Table:
    """Run a query of few rows, and return them."""
    if _of(df.sparkSession) >= _ARROW_RESULTS:
        return df.toArrow()
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    rows = [row.asDict() for row in df.collect()]
    return pa.Table.from_pylist(rows, to_arrow_schema(df.schema))


def has_column_functions(spark: "SparkSession") -> bool:
    """Tell whether Python can be given some columns of a DataFrame; else all of them have to pass through it."""
    return _of(spark) >= _COLUMN_FUNCTIONS


def refuse_unpassable(schema: "StructType", spark: "SparkSession") -> None:
    """Refuse, where all columns have to pass through Python, those that can't."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    for field in schema:
        try:
            to_arrow_type(field.dataType)
        except TypeError:  # noqa: PERF203 - a table has few columns
            raise ColumnError(
                f"Column {quoted(field.name)} has type {field.dataType.simpleString()[:80]}, which Spark "
                f"{spark.version} can't pass through Python. Leave it out, or use Spark {_text(_COLUMN_FUNCTIONS)} or "
                "later, where it needn't."
            ) from None


def _of(spark: "SparkSession") -> Version:
    """Return a session's version: of a Connect server and this process's pyspark, the older one."""
    import pyspark  # noqa: PLC0415

    return min(_read(spark.version), _read(pyspark.__version__))


def _read(version: str) -> Version:
    """Read a version; one that isn't understood is taken for the newest.

    >>> _read("3.5.6-amzn-2"), _read("4.1.0.dev3"), _read("main") > (99, 0)
    ((3, 5), (4, 1), True)
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (sys.maxsize, 0)


def _text(version: Version) -> str:
    return ".".join(map(str, version))
