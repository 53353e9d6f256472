"""A table of values that statistics often get wrong, and conditions on them in the SQL of several engines."""

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NAN, INF = math.nan, math.inf
PREFIX = "https://example.org/a-very-long-prefix-that-all-of-them-share/"
STEP = Decimal("1234567890123456789012.3457")
STARTS = ["zé", "漢字", "😀", "a", "A", "ÿ", "\U0010ffff", "", "~"]
PARTITIONS = ["a b", "x/y", "p%q", "é=+", "😀", None, "", "2026-01-01", "x" * 250]


def hard_rows(rows=2700, seed=0):
    """Rows in no order; every value comes about five times."""
    draw = np.random.default_rng(seed)
    k = draw.integers(0, rows // 5, rows)
    double = k / 7.0 - 40
    double[k % 19 == 0] = NAN
    double[k % 23 == 0] = -0.0
    double[k == 5], double[k == 6] = INF, -INF
    few = np.where(k > 500, double, np.abs(k - 250.0))  # NaN in a part of the files
    number = pa.array(few, mask=k % 11 == 0)
    days = (k - 300) * 40
    numbers = k.tolist()
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "k": pa.array(k),
            "dbl": pa.array(double),
            "flt": pa.array(double.astype(np.float32)),
            "few": number,
            "st": pa.StructArray.from_arrays([number, pa.array(double.astype(np.float32))], ["x", "y"]),
            "many": pa.array([[v, None] if n % 3 else None for n, v in zip(numbers, double.tolist(), strict=True)]),
            "txt": pa.array([_text(n) for n in numbers]),
            "url": pa.array([f"{PREFIX}{n:05d}" for n in numbers]),
            "day": pa.array(days.astype(np.int32)).cast(pa.date32()),
            "dec": pa.array([Decimal(n - 300) * STEP for n in numbers], pa.decimal128(38, 4)),
            "bin": pa.array([b"\xff" * (20 if n % 2 else 3) + n.to_bytes(4, "big") for n in numbers], pa.binary()),
            "p": pa.array([PARTITIONS[n % 9] for n in draw.integers(0, 9, rows).tolist()], pa.string()),
        }
    )  # fmt: skip


def _text(n):
    return STARTS[n % 9] * (1 + n % 5) + "😀" * (n % 40 if n % 7 == 0 else 0) + f"{n:05d}"


COLUMNS = ("k", "dbl", "flt", "few", "st.x", "st.y", "txt", "url", "day", "dec", "bin")
FLOATS = ("dbl", "flt", "few", "st.x", "st.y")
OPS = ("=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Condition:
    """A column, an operator and its values."""

    column: str
    op: str
    values: tuple = ()

    def sql(self, *, blob="unhex('{}')", column="{}['{}']"):
        """Write it in SQL; `blob` and `column` are how a dialect writes bytes and the field of a struct."""
        first, _, second = self.column.partition(".")
        name = column.format(first, second) if second else first
        literals = [_literal(value, self.column, blob) for value in self.values]
        if self.op == "IN":
            return f"{name} IN ({', '.join(literals)})"
        if self.op == "NOT <=":
            return f"NOT ({name} <= {literals[0]})"
        return f"{name} {self.op} {' '.join(literals)}".rstrip()


def _literal(value, column, blob):
    if isinstance(value, float):
        text = {INF: "Infinity", -INF: "-Infinity"}.get(value, repr(value))
        return f"CAST('{text}' AS {_width(column)})"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL(38, 4))"
    if isinstance(value, dt.date):
        return f"CAST('{value}' AS DATE)"
    if isinstance(value, bytes):
        return blob.format(value.hex())
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _width(column):
    return "FLOAT" if column in ("flt", "st.y") else "DOUBLE"


def column_of(rows, name):
    """A column of a table; the field of a struct by its dotted path."""
    first, _, second = name.partition(".")
    return pc.struct_field(rows[first], second) if second else rows[first]


def conditions(files, *, partitioned=False):
    """Make conditions on the bounds of some files, with every operator, and on values outside all bounds."""
    found = []
    chosen = [files[0], files[len(files) // 2], files[-1]]
    for name in COLUMNS:
        ends = {end for rows in chosen for end in _ends(column_of(rows, name))}
        values = sorted(ends)[:: max(1, len(ends) // 2)]
        values += [0.0, -0.0, -INF, INF, NAN] if name in FLOATS else []
        found += [Condition(name, op, (value,)) for value in values for op in OPS]
        first = next(value for value in values if value != 0)  # not every engine takes both zeros of a list for equal
        found += [Condition(name, "NOT <=", (values[0],)), Condition(name, "IN", (first, values[-1]))]
        found += [Condition(name, "IS NULL"), Condition(name, "IS NOT NULL")]
    if partitioned:
        found += [Condition("p", "=", (value,)) for value in PARTITIONS if value is not None]
        found += [Condition("p", "IN", ("a b", "x" * 250)), Condition("p", ">=", ("é=+",)), Condition("p", "IS NULL")]
    return found


def _ends(values):
    known = pc.drop_null(values)
    if pa.types.is_floating(known.type):
        known = known.filter(pc.is_finite(known))
    if pa.types.is_binary(known.type):
        texts = known.to_pylist()
        return {min(texts), max(texts)} if texts else set()
    ends = pc.min_max(known)
    return {ends["min"].as_py(), ends["max"].as_py()} - {None}
