"""Cluster a user's own DataFrame: `df.transform(zonal.clustered("hilbert(ts, payload_id)", files=64))`.

Sort keys are computed in Python from the key columns alone; the others never leave the JVM, where Spark can do without.
Each partition of the result is one file's worth of rows, in the layout's order, for any writer.
"""

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql import types as T  # noqa: N812

from zonal.errors import ColumnError, LayoutError, ZonalError, quoted
from zonal.layouts.batch import SAMPLE_ROWS
from zonal.layouts.curves import to_signed
from zonal.layouts.cuts import LARGEST, Cuts, key_cuts
from zonal.layouts.keys import key_words
from zonal.layouts.layout import CURVES, Layout
from zonal.layouts.ranks import Ranks
from zonal.layouts.sort import heaviest_key, stable_order
from zonal.spark.failures import told_in_words
from zonal.spark.reservoir import draw, merge, read_parts
from zonal.spark.row_partitions import addressed, addresses
from zonal.spark.session import check_worker_python, is_on_this_machine
from zonal.spark.shipment import carried
from zonal.spark.versions import collected, has_column_functions, refuse_unpassable
from zonal.values.arrays import UInt64Array
from zonal.values.columns import find
from zonal.worker.archives import forget_archives

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY_LENGTH = 256
"""Characters or bytes of a value that its sort key uses: bounds in table formats keep fewer."""
_KEY_TYPES = (
    T.NumericType, T.BooleanType, T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
    T.DayTimeIntervalType,
)  # fmt: skip
_LANES = 4
"""Tasks that merge the samples of partitions before the driver gets them."""


def clustered(layout: str | Layout, *, files: int) -> "Callable[[DataFrame], DataFrame]":
    """Return a step for `DataFrame.transform` that puts rows in clustered order, cut into about `files` partitions.

    The step reads the key columns once to sample them, then gives a DataFrame with the same columns and rows. A key
    with more rows than a file is spread over several ones, except rows that are equal in all columns.
    """
    if isinstance(layout, str):
        if layout in CURVES:
            raise LayoutError(f"Say which columns to cluster by: clustered('{layout}(column, …)', files={files}).")
        layout = Layout.parse(layout)
    if not isinstance(files, int) or isinstance(files, bool) or not 1 <= files < 2**31:
        raise ZonalError(f"files={files} is not a number of files.")
    chosen: Layout = layout
    return lambda df: _clustered(df, chosen, files)


def _clustered(df: "DataFrame", layout: Layout, files: int) -> "DataFrame":
    if df.isStreaming:
        raise ZonalError("A streaming DataFrame has no whole to cluster: use foreachBatch, and cluster each batch.")
    schema = df.schema
    # Numbered names: none is hostile, ambiguous or taken.
    plain = df.toDF(*(f"c{number}" for number in range(len(schema))))
    columns = _key_columns(schema, layout.columns)
    if not has_column_functions(df.sparkSession):
        refuse_unpassable(schema, df.sparkSession)
    check_worker_python(df.sparkSession)
    by_value = not is_on_this_machine(df.sparkSession)
    keys = [_short(column, kind).alias(f"k{number}") for number, (column, kind) in enumerate(columns)]
    plan = _plan(_sample(plain.select(*keys), by_value=by_value), layout, files)
    inputs = [*keys, *([_row_hash(schema)] if plan.ties else [])]
    placed = _placed(plain, inputs, plan, by_value=by_value)
    if layout.kind == "linear":
        order = [column for column, _ in columns]
    else:
        order = [F.col("place").getField(name) for name in plan.key_names]
    cut = placed.repartition(plan.cuts.pieces, F.col("place").getField("address")).sortWithinPartitions(*order)
    return cut.drop("place").toDF(*schema.names)


def _placed(plain: "DataFrame", inputs: "Sequence[Column]", plan: "_Plan", *, by_value: bool) -> "DataFrame":
    """Add the column `place`, by a function of the inputs; where Spark has none, all columns pass through Python."""
    if has_column_functions(plain.sparkSession):
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf  # noqa: PLC0415 - not in every version

        with warnings.catch_warnings():  # Spark prefers type hints, which a carried function doesn't have
            warnings.simplefilter("ignore", UserWarning)
            kind = plan.spark_type.simpleString()
            place = arrow_udf(carried(plan.places, by_value=by_value), kind, ArrowUDFType.SCALAR_ITER)
        return plain.select("*", place(*inputs).alias("place"))
    given = plain.select("*", *(column.alias(f"input{number}") for number, column in enumerate(inputs)))
    schema = T.StructType([*plain.schema, T.StructField("place", plan.spark_type)])
    return given.mapInArrow(carried(plan.with_places(len(plain.columns)), by_value=by_value), schema)


@dataclasses.dataclass(frozen=True, eq=False)
class _Plan:
    """What a worker needs to compute a row's partition and sort key."""

    layout: Layout
    """With the columns called k0, k1, …"""
    ranks: Ranks
    cuts: Cuts
    words: int
    ties: bool
    """Whether cuts have one word more than the keys: a hash of the row, which spreads keys heavier than a file."""

    @property
    def key_names(self) -> list[str]:
        return [f"word{number}" for number in range(self.words)]

    @property
    def spark_type(self) -> T.StructType:
        words = [T.StructField(name, T.LongType()) for name in self.key_names]
        return T.StructType([T.StructField("address", T.IntegerType()), *words])

    def places(self, batches: Iterable[pa.Array | tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """Yield the address of their piece and the key of rows, from their key columns and, with `ties`, their hash."""
        forget_archives()
        for batch in batches:
            columns = batch if isinstance(batch, tuple) else (batch,)
            words = self._words(columns)
            parts = [addresses(self.cuts.assign(words)), *(to_signed(word) for word in words[: self.words])]
            yield pa.StructArray.from_arrays([pa.array(part) for part in parts], ["address", *self.key_names])

    def with_places(self, count: int) -> "Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
        """Return a step that puts `place` where the inputs of `places` stand, behind the first `count` columns."""

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                (place,) = self.places([tuple(batch.columns[count:])])
                names = [*batch.schema.names[:count], "place"]
                yield pa.RecordBatch.from_arrays([*batch.columns[:count], place], names)

        return run

    def _words(self, columns: Sequence[pa.Array]) -> tuple[UInt64Array, ...]:
        data = pa.table(dict(zip(self.layout.columns, columns, strict=False)))
        words = key_words(data, self.layout, self.ranks)
        if not self.ties:
            return words
        return (*words, columns[-1].to_numpy(zero_copy_only=False).view(np.uint64))


def _key_columns(schema: T.StructType, names: Sequence[str]) -> "list[tuple[Column, T.DataType]]":
    """Resolve the layout's columns, or raise one error that names all that are unknown or have no order."""
    known = pa.schema([pa.field(field.name, _skeleton(field.dataType)) for field in schema])
    resolved, problems = [], []
    for name in names:
        try:
            path = find(known, name)
        except ColumnError as error:
            problems.append(str(error))
            continue
        column, kind = F.col(f"c{path[0]}"), schema[path[0]].dataType
        for position in path[1:]:
            assert isinstance(kind, T.StructType)  # noqa: S101 - `find` walked it
            column, kind = column.getField(kind[position].name), kind[position].dataType
        if not isinstance(kind, _KEY_TYPES):
            hint = "Name one of its fields with a dot" if isinstance(kind, T.StructType) else "Use another column"
            problems.append(f"Column {quoted(name)} has type {kind.simpleString()[:80]}, which has no order. {hint}.")
        resolved.append((column, kind))
    if problems:
        raise ColumnError(" ".join(problems))
    return resolved


def _skeleton(kind: T.DataType) -> pa.DataType:
    """Return an Arrow type with the same field names: all that `find` needs, and possible for every Spark type."""
    if isinstance(kind, T.StructType):
        return pa.struct([pa.field(field.name, _skeleton(field.dataType)) for field in kind])
    return pa.null()


def _short(column: "Column", kind: T.DataType) -> "Column":
    return F.substring(column, 1, _KEY_LENGTH) if isinstance(kind, T.StringType | T.BinaryType) else column


def _row_hash(schema: T.StructType) -> "Column":
    """Hash the row and its input partition, so that repeated tasks place it the same way."""
    hashable = [F.col(f"c{number}") for number, field in enumerate(schema) if _is_hashable(field.dataType)]
    return F.xxhash64(*hashable, F.spark_partition_id())


def _is_hashable(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_is_hashable(field.dataType) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _is_hashable(kind.elementType)
    return isinstance(kind, _KEY_TYPES)


def _sample(keys: "DataFrame", *, by_value: bool) -> pa.Table:
    """Read the keys once, and return at most `SAMPLE_ROWS` rows, each as likely as any other."""
    most = SAMPLE_ROWS // _LANES
    columns = "lane int, rows long, part binary"
    drawn = keys.mapInArrow(carried(addressed(draw(most, _LANES)), by_value=by_value), columns)
    merged = drawn.repartition(_LANES, "lane").mapInArrow(carried(merge(most), by_value=by_value), columns)
    with told_in_words("Spark couldn't sample the keys"):
        parts = collected(merged)
    sample = read_parts(parts, SAMPLE_ROWS)
    if sample is None:  # a table without rows
        return collected(keys.limit(0))
    return sample


def _plan(sample: pa.Table, layout: Layout, files: int) -> _Plan:
    """Fit ranks, and cut the sample's keys into about `files` pieces."""
    numbered = dataclasses.replace(layout, columns=tuple(sample.column_names), bloom_columns=())
    ranks = Ranks.fit(sample, numbered.curve_columns)
    words = key_words(sample, numbered, ranks)
    keys = len(words)
    target = sample.num_rows / files
    order = stable_order(words)
    ties = heaviest_key([word[order] for word in words]) > max(LARGEST * target, 1)
    if ties:
        # Stand-ins for the hashes of rows: both are uniform over all numbers.
        words = (*words, np.random.default_rng(0).integers(0, 2**64, sample.num_rows, np.uint64))
        order = stable_order(words)
    ordered = [word[order] for word in words]
    cuts = Cuts.at(ordered, key_cuts(layout.kind, ordered, target))
    # Reading the ranks from JSON drops the look-up tables that the keys above needed.
    return _Plan(numbered, Ranks.from_json(ranks.to_json()), cuts, keys, ties)
