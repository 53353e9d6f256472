"""The colors of pages and notebooks, each defined once.

Pages get them as CSS variables: `--ink` is the color of text for the reader's scheme, `--printed-ink` that on paper.
`charts.js` reads these variables, because a browser calls it before the styles of print hold.
"""

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "ink": "#1c2126",
    "soft": "#59636e",
    "paper": "#ffffff",
    "panel": "#f3f5f7",
    "line": "#d5dae0",
    "bar": "#2f6fb7",
    "good": "#1a7f4b",
    "warn": "#8a5a00",
    "bad": "#b3261e",
    "read": "#c2570c",
    "old": "#8b96a3",
}
"""With six digits each: `charts.js` takes them apart."""
DARK: Mapping[str, str] = {
    "ink": "#e4e8ec",
    "soft": "#9ba6b2",
    "paper": "#14181c",
    "panel": "#1e242a",
    "line": "#39424b",
    "bar": "#6aa5e6",
    "good": "#57c78b",
    "warn": "#e0ae4d",
    "bad": "#ff8a80",
    "read": "#ff9d52",
    "old": "#77838f",
}
PRINTED: Mapping[str, str] = {**LIGHT, "ink": "#000000", "soft": "#444444", "line": "#bbbbbb"}
"""Paper is white, whatever the reader's scheme."""

# A notebook may be light or dark, and doesn't say: neither color is text, and both stand out on white and on black.
NOTEBOOK_UNREAD, NOTEBOOK_READ = "#3f86cf", "#d9730d"
NOTEBOOK_LINE = "rgba(128, 128, 128, .4)"


def color_rules() -> str:
    """Write the CSS rules that define the colors: for light and dark schemes, and for print, which overrides both."""
    printed = {f"printed-{name}": color for name, color in PRINTED.items()}
    on_paper = {name: f"var(--printed-{name})" for name in PRINTED}
    return (
        f":root {{ color-scheme: light dark; {_variables({**LIGHT, **printed})} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}\n"
        f"@media print {{ :root {{ {_variables(on_paper)} }} }}\n"
    )


def _variables(colors: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())
