"""Make TPC-H as one wide table, line items joined with orders, customers, parts and suppliers, and its queries.

Fifteen of the benchmark's queries have filters on the joined rows. Their parameters are drawn as the specification
(clause 2.4) draws them. Q18, whose filter is on a sum, is for the most expensive orders instead.
"""

import datetime as dt
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARAMETER_SETS = 20
TABLES = ("lineitem", "orders", "customer", "part", "supplier", "nation", "region")

Draw = np.random.Generator


def wide_table(scale: float) -> pa.Table:
    """Generate the tables (package tpchgen-cli) and join them; rows stay in the order of line items."""
    program = shutil.which("tpchgen-cli", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise ModuleNotFoundError("tpchgen-cli is missing: pip install --group dev", name="tpchgen-cli")
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "parquet", "-s", f"{scale:g}", "--tables", ",".join(TABLES), "--output-dir", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return _joined({name: _read(Path(folder) / f"{name}.parquet") for name in TABLES})


def _read(file: Path) -> pa.Table:
    """Read a table's file, with string views, of which Arrow can't take rows, as strings."""
    table = pq.read_table(file)
    kinds = [pa.string() if column.type == pa.string_view() else column.type for column in table.schema]
    return table.cast(pa.schema(zip(table.schema.names, kinds, strict=True)))


def _joined(tables: dict[str, pa.Table]) -> pa.Table:
    items = tables["lineitem"]
    order = _rows_of(items["l_orderkey"], tables["orders"]["o_orderkey"])
    orders = tables["orders"].select(["o_custkey", "o_orderdate", "o_totalprice", "o_orderpriority"]).take(order)
    customer = _rows_of(orders["o_custkey"], tables["customer"]["c_custkey"])
    part = _rows_of(items["l_partkey"], tables["part"]["p_partkey"])
    supplier = _rows_of(items["l_suppkey"], tables["supplier"]["s_suppkey"])
    columns = {
        name: items[name]
        for name in (
            "l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_returnflag",
            "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode",
        )
    }  # fmt: skip
    columns |= {name: orders[name] for name in orders.column_names}
    columns["c_mktsegment"] = tables["customer"]["c_mktsegment"].take(customer)
    for letter, table, rows in (("c", "customer", customer), ("s", "supplier", supplier)):
        nation = _rows_of(tables[table][f"{letter}_nationkey"].take(rows), tables["nation"]["n_nationkey"])
        region = _rows_of(tables["nation"]["n_regionkey"], tables["region"]["r_regionkey"]).take(nation)
        columns[f"{letter}_nation"] = tables["nation"]["n_name"].take(nation)
        columns[f"{letter}_region"] = tables["region"]["r_name"].take(region)
    for name in ("p_name", "p_brand", "p_type", "p_size", "p_container"):
        columns[name] = tables["part"][name].take(part)
    return pa.table(columns).combine_chunks()


def _rows_of(wanted: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.Array:
    """Return the row of each wanted key; `keys` are sorted."""
    return pa.array(np.searchsorted(keys.to_numpy(), wanted.to_numpy()))


def wide_queries(data: pa.Table, rng: Draw, sets: int = PARAMETER_SETS) -> list[str]:
    """Make `sets` queries of every template, with parameters drawn for each."""
    values = _Values(data)
    return [template(values, rng) for template in TEMPLATES for _ in range(sets)]


class _Values:
    """The values that parameters are drawn from."""

    def __init__(self, data: pa.Table) -> None:
        self.distinct = {
            name: sorted(pc.unique(data[name]).to_pylist())
            for name in ("c_mktsegment", "c_nation", "c_region", "p_type", "p_brand", "p_container", "l_shipmode")
        }
        self.colors = sorted({name.split()[0] for name in pc.unique(data["p_name"]).to_pylist()})
        prices: npt.NDArray[np.float64] = data["o_totalprice"].cast(pa.float64()).to_numpy()
        self.expensive = np.quantile(prices, [0.98, 0.999])

    def one(self, name: str, rng: Draw) -> str:
        return str(rng.choice(self.distinct[name]))

    def some(self, name: str, count: int, rng: Draw) -> list[str]:
        return [str(value) for value in rng.choice(self.distinct[name], count, replace=False)]


def _months(column: str, first: int, last: int, length: int, rng: Draw) -> str:
    """Make a condition on `length` months of a column, which begin `first` to `last` months after January 1993."""
    start = int(rng.integers(first, last + 1))
    days = [dt.date(1993 + month // 12, month % 12 + 1, 1) for month in (start, start + length)]
    return f"{column} >= DATE '{days[0]}' AND {column} < DATE '{days[1]}'"


def _year(column: str, rng: Draw) -> str:
    year = int(rng.integers(1993, 1998))
    return f"{column} >= DATE '{year}-01-01' AND {column} < DATE '{year + 1}-01-01'"


def _q1(_: _Values, rng: Draw) -> str:
    return f"l_shipdate <= DATE '{dt.date(1998, 12, 1) - dt.timedelta(days=int(rng.integers(60, 121)))}'"


def _q3(values: _Values, rng: Draw) -> str:
    day = f"DATE '1995-03-{int(rng.integers(1, 32)):02d}'"
    return f"c_mktsegment = '{values.one('c_mktsegment', rng)}' AND o_orderdate < {day} AND l_shipdate > {day}"


def _q4(_: _Values, rng: Draw) -> str:
    return f"{_months('o_orderdate', 0, 57, 3, rng)} AND l_commitdate < l_receiptdate"


def _q5(values: _Values, rng: Draw) -> str:
    region = values.one("c_region", rng)
    return f"c_region = '{region}' AND s_region = '{region}' AND {_year('o_orderdate', rng)}"


def _q6(_: _Values, rng: Draw) -> str:
    middle, most = int(rng.integers(2, 10)), int(rng.integers(24, 26))
    return (
        f"{_year('l_shipdate', rng)} AND l_discount BETWEEN 0.{middle - 1:02d} AND 0.{middle + 1:02d} "
        f"AND l_quantity < {most}"
    )


def _q7(values: _Values, rng: Draw) -> str:
    one, two = values.some("c_nation", 2, rng)
    return (
        f"((s_nation = '{one}' AND c_nation = '{two}') OR (s_nation = '{two}' AND c_nation = '{one}')) "
        "AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"
    )


def _q8(values: _Values, rng: Draw) -> str:
    return (
        f"c_region = '{values.one('c_region', rng)}' AND p_type = '{values.one('p_type', rng)}' "
        "AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"
    )


def _q10(_: _Values, rng: Draw) -> str:
    return f"{_months('o_orderdate', 1, 24, 3, rng)} AND l_returnflag = 'R'"


def _q12(values: _Values, rng: Draw) -> str:
    one, two = values.some("l_shipmode", 2, rng)
    return (
        f"l_shipmode IN ('{one}', '{two}') AND {_year('l_receiptdate', rng)} "
        "AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate"
    )


def _q14(_: _Values, rng: Draw) -> str:
    return _months("l_shipdate", 0, 59, 1, rng)


def _q15(_: _Values, rng: Draw) -> str:
    return _months("l_shipdate", 0, 57, 3, rng)


def _q17(values: _Values, rng: Draw) -> str:
    return f"p_brand = '{values.one('p_brand', rng)}' AND p_container = '{values.one('p_container', rng)}'"


def _q18(values: _Values, rng: Draw) -> str:
    return f"o_totalprice > {rng.uniform(*values.expensive):.2f}"


def _q19(values: _Values, rng: Draw) -> str:
    sizes = (("SM", ("CASE", "BOX", "PACK", "PKG"), 5, 1), ("MED", ("BAG", "BOX", "PKG", "PACK"), 10, 10),
             ("LG", ("CASE", "BOX", "PACK", "PKG"), 15, 20))  # fmt: skip
    parts = []
    for size, kinds, largest, least in sizes:
        quantity = least + int(rng.integers(0, 11 if least > 1 else 10))
        containers = ", ".join(f"'{size} {kind}'" for kind in kinds)
        parts.append(
            f"(p_brand = '{values.one('p_brand', rng)}' AND p_container IN ({containers}) "
            f"AND l_quantity BETWEEN {quantity} AND {quantity + 10} AND p_size BETWEEN 1 AND {largest})"
        )
    return f"({' OR '.join(parts)}) AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'"


def _q20(values: _Values, rng: Draw) -> str:
    color, nation = rng.choice(values.colors), values.one("c_nation", rng)
    return f"p_name LIKE '{color}%' AND s_nation = '{nation}' AND {_year('l_shipdate', rng)}"


TEMPLATES: tuple[Callable[[_Values, Draw], str], ...] = (
    _q1, _q3, _q4, _q5, _q6, _q7, _q8, _q10, _q12, _q14, _q15, _q17, _q18, _q19, _q20,
)  # fmt: skip
