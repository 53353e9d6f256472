"""What the source tree promises to a reader: short modules, a purpose for each, one meaning for each name."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import zonal
from zonal.rewriting import in_place
from zonal.storage import connection
from zonal.tables.delta import commit as delta
from zonal.tables.iceberg import commit as iceberg

SOURCE = Path(zonal.__file__).parent
ROOT = SOURCE.parent.parent
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST, LONGEST_TEST = 450, 500
"""Lines of a module."""
MOST_PARAMETERS = 11
LONGEST_FUNCTION = 45
"""Lines of a function's body, without its docstring."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_module_is_short_and_says_what_it_is_for(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST
    purpose = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    assert purpose.endswith((".", "`.")), "one sentence"
    assert len(purpose) <= 200


def test_functions_are_short():
    long = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                first = node.body[min(ast.get_docstring(node) is not None, len(node.body) - 1)]
                lines = node.body[-1].end_lineno - first.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long[f"{path.relative_to(SOURCE)}: {node.name}"] = lines
    assert long == {}


def test_modules_of_tests_are_short():
    long = {
        path.name: lines
        for path in (ROOT / "tests").rglob("*.py")
        if (lines := path.read_text().count("\n")) > LONGEST_TEST
    }
    assert long == {}


def test_no_two_public_classes_have_the_same_name():
    places = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_names_of_types_mean_different_things():
    """Aliases of two modules may have one definition; parameters of generic functions are local to them."""
    meanings = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                meanings[node.name].add(f"class of {path.relative_to(SOURCE)}")
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                text = ast.unparse(node.value)
                if re.fullmatch(r"[A-Z][a-z]\w*", ast.unparse(target)) and not re.match(r"(TypeVar|ParamSpec)\(", text):
                    meanings[ast.unparse(target)].add(text)
    public = {name: found for name, found in meanings.items() if not name.startswith("_")}
    assert {name: found for name, found in public.items() if len(found) > 1} == {}


def test_no_module_is_named_by_what_it_does():
    """Names in -ing are nouns of the field."""
    nouns = {
        "audit_wording",
        "cleaning",
        "clustering",
        "incoming",
        "drawing",
        "listing",
        "roaring",
        "sampling",
        "training",
        "wording",
    }
    assert {path.stem for path in MODULES if path.stem.endswith("ing")} <= nouns


@pytest.mark.parametrize("package", ["verbs", "rewriting", "study", "sql"])
def test_functions_take_about_ten_parameters(package):
    """What belongs together is a value; each verb also takes those that all of them share."""
    shared, many = {"self", "catalog", "storage_options", "progress"}, {}
    for path in (SOURCE / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
                if len(names - shared) > MOST_PARAMETERS:
                    many[node.name] = sorted(names)
    assert many == {}


def test_an_option_of_commands_is_declared_once():
    places = defaultdict(list)
    for path in (SOURCE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Option", "typer.Argument"):
                said = {each.arg: ast.unparse(each.value) for each in node.keywords}
                places[said.get("help", "")].append(path.name)
    shared = {text: found for text, found in places.items() if len(set(found)) > 1}
    assert shared == {}


def test_aliases_of_arrays_are_in_one_module():
    for path in MODULES:
        if path.name != "arrays.py":
            assert not re.search(r"^[A-Z]\w*(: TypeAlias)? = npt\.NDArray", path.read_text(), re.M), path


def test_contributing_names_every_package_and_only_modules_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    picture = text[text.index("```") : text.rindex("```\n\nEvery package")]
    known = set(picture.split())
    entries = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert entries - known == {"__init__", "__main__"}
    for named in re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py|/|\.[A-Za-z_]+(?:\.[a-z_]+)?)?)`", text):
        if named.startswith(("tests/", "benchmarks/")):
            assert (ROOT / named).exists(), named
        else:
            _check(named)


def _check(named):
    """See that a module is there, and what is named of it."""
    module, _, name = named.removesuffix(".py").rstrip("/").partition(".")
    path = SOURCE / module
    if named.endswith("/"):
        assert path.is_dir(), named
        return
    assert path.with_suffix(".py").exists(), named
    if name:
        _defined(name.split("."), ast.parse(path.with_suffix(".py").read_text()).body, named)


def _defined(names, body, named):
    """See that a function or class is in a module, and a method in its class."""
    found = next((node for node in body if getattr(node, "name", None) == names[0]), None)
    assert found is not None, named
    if names[1:]:
        _defined(names[1:], found.body, named)


def test_every_name_of_code_in_contributing_is_in_the_code():
    """Names in backticks, such as `CURVES`, are words of the source, the tests, the benchmarks or the Makefile."""
    text = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.S)
    modules = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    code = "\n".join(path.read_text() for path in (*modules, ROOT / "Makefile"))
    words = set(re.findall(r"\w+", code)) | {path.stem for path in modules}
    named = {word for each in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[A-Za-z_]{4,}", each)}
    assert named - words - {"maxFailures"} == set(), "but for a setting of Spark"


def test_contributing_tells_how_often_things_are_retried():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert f"{delta.ATTEMPTS} times (Delta), {iceberg.ATTEMPTS} times (Iceberg)" in text
    assert f"| {in_place.ATTEMPTS} attempts |" in text
    assert f"{connection.ATTEMPTS} attempts (S3)" in text
