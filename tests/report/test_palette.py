"""Colors are defined in one place, completely, and everything that draws takes them from there."""

import re
from pathlib import Path

import pytest

from zonal.report import palette
from zonal.report.page.frame import page, text

SOURCES = Path(palette.__file__).parents[1]
HEX = re.compile(r"(?<![&\w])#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b", re.IGNORECASE)
USED = re.compile(r"var\(--([a-z-]+)\)")
DRAWN = re.compile(r'(?:color|faded)\("([a-z]+)"')


def test_no_other_module_defines_a_color():
    files = [path for path in SOURCES.rglob("*") if path.suffix in (".py", ".js", ".css", ".html")]
    found = {path.name for path in files if HEX.search(path.read_text(encoding="utf-8"))}
    assert found == {"palette.py"}


@pytest.mark.parametrize("colors", [palette.DARK, palette.PRINTED], ids=["dark", "print"])
def test_every_scheme_has_every_color(colors):
    assert colors.keys() == palette.LIGHT.keys()
    for color in (*palette.LIGHT.values(), *colors.values()):
        assert re.fullmatch(r"#[0-9a-f]{6}", color), "charts.js reads six digits"


def test_pages_use_only_colors_that_are_defined_and_all_of_them():
    style = page("t", text("")).partition("<style>")[2].partition("</style>")[0]
    script = (SOURCES / "report" / "page" / "charts.js").read_text(encoding="utf-8")
    rules = palette.color_rules()
    assert rules in style
    used = set(USED.findall(style.replace(rules, "")))
    drawn = set(DRAWN.findall(script))
    assert "--printed-" in script
    assert used | drawn == palette.LIGHT.keys()


def test_print_is_defined_last_so_that_it_overrides_the_dark_scheme():
    rules = palette.color_rules()
    assert rules.index("prefers-color-scheme: dark") < rules.index("@media print")
    for name, color in palette.PRINTED.items():
        assert f"--printed-{name}: {color};" in rules
        assert f" --{name}: var(--printed-{name});" in rules
