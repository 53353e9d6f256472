"""A test module imports no other: what tests share lies in modules that hold no tests."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_no_test_module_is_imported():
    modules = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in TESTS.rglob("*.py"):
        names = {name for name in imported(ast.parse(path.read_text())) if modules & set(name.split("."))}
        assert names == set(), path
