"""Nothing above `tables/` asks which format a table has: adapters say what others must know."""

import ast
import re
import sys
from pathlib import Path

import pytest

import zonal
from zonal.tables.names import FORMATS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SOURCE = Path(zonal.__file__).parent
PROJECT = SOURCE.parent.parent / "pyproject.toml"
MAKES_TABLES = "demo/writers.py"
"""The demonstration's tables are made by the formats' own libraries, one writer per format."""

NAME = re.compile(rf"(?:{'|'.join(FORMATS)}):?")
FIELD = re.compile(r"(?:delta|write|engine)[.-][a-z]+[\w.-]*|engineInfo|clusteringProvider|zonal\.run")
TESTS_OF_TEXT = ("startswith", "endswith", "removeprefix", "removesuffix", "get", "count", "index")


def layers_above_tables():
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["type"] == "layers")
    names = [[name.strip() for name in layer.split("|")] for layer in layers]
    place = next(number for number, layer in enumerate(names) if "tables" in layer)
    return [name for layer in names[:place] for name in layer]


def modules_above_tables():
    for name in layers_above_tables():
        single = SOURCE / f"{name}.py"
        yield from [single] if single.exists() else sorted((SOURCE / name).rglob("*.py"))


def names_a_format(node):
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(names_a_format, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(NAME.fullmatch(node.value))


def asks(node):
    """Tell whether a piece of code depends on the name of a format, or on what a format calls something."""
    match node:
        case ast.Compare():
            return any(map(names_a_format, (node.left, *node.comparators)))
        case ast.MatchValue():
            return names_a_format(node.value)
        case ast.Dict():
            return any(key is not None and names_a_format(key) for key in node.keys)
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in TESTS_OF_TEXT and any(map(names_a_format, node.args))
        case ast.ImportFrom(module=str(module)):
            return module.startswith(tuple(f"zonal.tables.{name}" for name in FORMATS))
        case ast.Constant(value=str(text)):
            return bool(FIELD.fullmatch(text))
    return False


def asking(text):
    return [node.lineno for node in ast.walk(ast.parse(text)) if asks(node)]


def test_nothing_above_tables_asks_which_format_it_is():
    found = {path.relative_to(SOURCE).as_posix(): asking(path.read_text("utf-8")) for path in modules_above_tables()}
    assert len(found) > 100, "the layers above tables/ are most of the source"
    assert found.pop(MAKES_TABLES), "the exception is none any more"
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code",
    [
        "snapshot.format == 'delta'",
        "'iceberg' != table_format",
        "form in ('delta', 'iceberg')",
        "match form:\n    case 'parquet': pass",
        "{'delta': 1, 'iceberg': 2}[form]",
        "into.startswith('iceberg:')",
        "name.startswith(('delta:', 'iceberg:'))",
        "properties.get('delta.dataSkippingNumIndexedCols')",
        "details['engineInfo']",
        "f'write.metadata.metrics.column.{name}'",
        "from zonal.tables.parquet.folder import ParquetTable",
    ],
)
def test_every_way_to_ask_is_seen(code):
    assert asking(code)


@pytest.mark.parametrize(
    "code",
    ["f'{table} ({snapshot.format})'", "format=snapshot.format", "'delta'", "from zonal.tables.protocol import Table"],
)
def test_a_format_may_be_printed_and_passed_on(code):
    assert not asking(code)
