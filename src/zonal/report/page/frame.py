"""Build pages: files of HTML without references, and the elements that they consist of.

Untrusted text becomes `Html` only through `text`, which escapes it, so that no name can be a tag. Pages with charts
carry the scripts that draw them; the page's content security policy lets a browser run only those.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NewType

from zonal.report.palette import color_rules
from zonal.report.terminal.text import printable
from zonal.report.wording import MOST_CHARACTERS, clipped

Html = NewType("Html", str)
NOTHING = Html("")

_STYLE = (
    color_rules()
    + """\
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 68rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: .5rem 0 .25rem; }
p, ul { margin: .5rem 0; }
ul { padding-left: 1.25rem; }
.soft, caption, footer, small { color: var(--soft); }
.verdict { border-left: 4px solid var(--good); background: var(--panel); padding: .75rem 1rem; margin: 1rem 0; }
.verdict.other { border-color: var(--warn); }
.verdict.bad { border-color: var(--bad); }
.verdict p { font-size: 1.1rem; margin: 0; }
.verdict p + p { font-size: 1rem; margin-top: .4rem; }
.bad-text { color: var(--bad); font-weight: 600; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
pre { margin: .75rem 0 0; padding: .6rem .75rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: 4px; white-space: pre-wrap; font: .9rem/1.45 ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .35rem; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th code { font-weight: 400; }
thead th { font-size: .85rem; color: var(--soft); font-weight: 600; vertical-align: bottom;
  overflow-wrap: break-word; }
tbody th { font-weight: 600; min-width: 9rem; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
tr.chosen > * { background: var(--panel); }
.mark { color: var(--good); }
small { display: block; font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0 1rem; }
dt { color: var(--soft); }
dd { margin: 0; }
.share { display: flex; gap: .75rem; align-items: center; }
.share > span { flex: 0 0 3.8rem; text-align: right; white-space: nowrap; }
.share svg { display: block; width: 100%; min-width: 5rem; height: .8rem; }
svg .back { fill: var(--line); opacity: .45; }
svg .bar { fill: var(--bar); }
svg .span { stroke: var(--ink); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.tiles > div { border: 1px solid var(--line); border-radius: 6px; padding: .6rem .75rem; }
.tiles b { display: block; font-size: 1.35rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: .85rem; }
figure { margin: .75rem 0 1.5rem; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 60rem; }
figcaption p { margin: .25rem 0; }
.controls { display: none; flex-wrap: wrap; gap: .5rem 1rem; margin: .5rem 0; }
.scripted .controls { display: flex; }
.controls label { display: flex; flex-direction: column; flex: 1 1 9rem; min-width: 0; font-size: .85rem;
  color: var(--soft); }
.controls label:first-child:last-child { max-width: 20rem; }
.controls label:last-child:nth-child(3) { flex: 3 1 18rem; }
.controls select { font: inherit; font-size: .95rem; color: var(--ink); background: var(--paper); padding: .35rem .4rem;
  border: 1px solid var(--line); border-radius: 4px; width: 100%; max-width: 100%; text-overflow: ellipsis; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; font-size: .85rem; color: var(--soft); }
.legend > span { display: inline-flex; align-items: center; gap: .4rem; }
.swatch { width: .9rem; height: .9rem; border-radius: 2px; border: 1.5px solid; flex: none; }
.swatch.file { color: var(--bar); background: color-mix(in srgb, var(--bar) 25%, transparent); }
.swatch.read { color: var(--read); background: color-mix(in srgb, var(--read) 35%, transparent); }
.swatch.asked { color: var(--ink); border-style: dashed; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: .5rem 1.5rem; }
.field { min-width: 0; }
.plot { min-height: 8rem; }
.said { margin: 0; min-height: 1.5em; font-variant-numeric: tabular-nums; }
.said:empty { display: none; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
.scroll { max-height: 30rem; overflow: auto; }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .5rem; font-size: .85rem; }
@media (max-width: 44rem) {
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, caption, tbody, tr, th, td { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  tr.chosen { border-left: 4px solid var(--good); padding-left: .6rem; }
  tr.chosen > * { background: none; }
  th, td { border: 0; padding: .1rem 0; }
  td[data-label] { display: flex; gap: 1rem; justify-content: space-between; }
  td[data-label]::before { content: attr(data-label); color: var(--soft); flex: none; }
  td[data-label] > * { max-width: 70%; }
  td .share { width: 12rem; }
  td.number { text-align: right; white-space: normal; }
}
@page { margin: 15mm; }
@media print {
  body { font-size: 11pt; max-width: none; padding: 0; }
  tr, pre, .verdict, .tiles, figure, figcaption { break-inside: avoid; }
  h2, h3, .controls, .legend { break-after: avoid; }
  details:not([open]) { display: none; }
  .controls select { appearance: none; border: 0; padding: 0; }
  .plots { grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: .5rem; }
  .scroll { max-height: none; overflow: visible; }
  svg, .swatch, .plot, .verdict, tr.chosen > * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
)
_POLICY = "default-src 'none'; {scripts}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Scripts:
    """A page's scripts in their order, and the data that they find by its id."""

    sources: Sequence[str]
    data_id: str
    data: str
    """JSON without markup."""


def page(title: str, content: Html, scripts: Scripts | None = None) -> str:
    """Return a whole page that loads nothing and runs only its own `scripts`."""
    sources = () if scripts is None else tuple(map(_harmless, scripts.sources))
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in sources)
    policy = _POLICY.format(scripts=f"script-src {hashes}; " if hashes else "")
    data = "" if scripts is None else _data(scripts)
    run = "".join(f"<script>{source}</script>\n" for source in sources)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{content}\n</main>\n{data}{run}</body>\n</html>\n"
    )


def _data(scripts: Scripts) -> str:
    if any(mark in scripts.data for mark in "<>"):
        raise ValueError("the data of a page holds markup")
    return f'<script type="application/json" id="{scripts.data_id}">{scripts.data}</script>\n'


def _harmless(source: str) -> str:
    """Return a script with the line ends that a browser hashes; refuse one that would end its own element."""
    script = source.replace("\r\n", "\n").replace("\r", "\n")
    if any(mark in script.casefold() for mark in ("</script", "<script", "<!--", "\0")):
        raise ValueError("a script of a page would end or hide its own element")
    return script


def text(value: str, limit: int = MOST_CHARACTERS) -> Html:
    """Escape untrusted text: cut it, spell out invisible characters, and escape markup.

    >>> text("<b>" + chr(0x202E))
    '&lt;b&gt;\\\\u202e'
    """
    return Html(escape(printable(clipped(value, limit))))


def name(value: str, limit: int = MOST_CHARACTERS) -> Html:
    """Write a name, isolated so that its direction doesn't reorder the text around it."""
    return Html(f"<bdi>{text(value, limit)}</bdi>")


def element(tag: str, *children: Html, **attributes: str) -> Html:
    """Write an element; in an attribute's name a trailing underscore is dropped, and others become hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(value))}"'
        for key, value in attributes.items()
        if value
    )
    return Html(f"<{tag}{written}>{''.join(children)}</{tag}>")


def joined(parts: Iterable[Html]) -> Html:
    """Join elements, one per line."""
    return Html("\n".join(part for part in parts if part))


def section(heading: str, *content: Html) -> Html:
    """Write a section with its heading."""
    return element("section", element("h2", text(heading)), *content)


def listed(lines: Iterable[Html]) -> Html:
    """Write a list; nothing where there are no lines."""
    items = [element("li", line) for line in lines]
    return element("ul", *items) if items else NOTHING


def described(facts: Iterable[tuple[Html, Html]]) -> Html:
    """Write facts after their labels; nothing where there are none."""
    items = [item for label, fact in facts for item in (element("dt", label), element("dd", fact))]
    return element("dl", *items) if items else NOTHING
