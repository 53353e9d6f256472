"""Chart a picture: files as rectangles over two columns, and their depth, which is how many overlap."""

from collections.abc import Mapping, Sequence

import numpy as np

from zonal.picture.picture import Axis, Drawing, DrawnQuery, Picture
from zonal.picture.ticks import LAST_PLACE
from zonal.report.blocks import Cell, Heading, TableBlock, TableRow
from zonal.report.page.charts import Chart, Choice, packed, packed_bits, shown, swatches
from zonal.report.page.frame import Html, element, text
from zonal.report.terminal.text import query_text
from zonal.report.wording import plural, share_text
from zonal.skipping.depth import Depth
from zonal.values.arrays import UInt16Array
from zonal.values.sizes import size_text

MOST_DATA = 2_400_000
"""Characters of a page that the rectangles and the masks of what queries read may take."""

_BY_NUMBER = "n"
"""Chosen for the vertical axis: files one above another."""


# --- Files -----------------------------------------------------------------------------------------------------------


def files_chart(picture: Picture | None, commits: Sequence[tuple[int, str]] = ()) -> Chart | None:
    """Draw files over two columns that readers choose, with a query's box or a commit's files on them.

    `commits` can be chosen: each is its number in the table's log, and its name.
    """
    if picture is None or not picture.axes or not any(len(drawing.drawn) for drawing in picture.drawings):
        return None
    axes, questions = _within(picture)
    marks = [mark for mark in commits if any((each.added_by == mark[0]).any() for each in picture.drawings)]
    data: dict[str, object] = {
        "kind": "files",
        "axes": [_axis(axis) for axis in axes],
        "drawings": [_drawing(drawing, axes) for drawing in picture.drawings],
        "questions": [_question(question, axes, picture.drawings) for question in questions],
        "commits": [_commit(number, picture.drawings) for number, _ in marks],
    }
    first = questions[0] if questions else None
    return Chart(
        id="files",
        label=_label(picture, first),
        caption=_caption(picture, axes, questions),
        data=data,
        numbers=_numbers(picture, axes),
        plots=[(_heading(each), _said(first, at, each)) for at, each in enumerate(picture.drawings)],
        choices=_choices(axes, questions, marks),
        legend=_legend(first, marks),
    )


def _within(picture: Picture) -> tuple[Sequence[Axis], Sequence[DrawnQuery]]:
    """Return the columns and queries that a page has room for: at least two columns and one query."""
    drawn = sum(len(drawing.drawn) for drawing in picture.drawings)
    most = max(2, int(0.6 * MOST_DATA / max(drawn * 4 * 4 / 3, 1)))
    axes = picture.axes[:most]
    left = MOST_DATA - len(axes) * drawn * 4 * 4 / 3
    known = [question for question in picture.questions if question.reads]
    return axes, known[: max(1, int(left / max(drawn / 6, 1)))]


def _axis(axis: Axis) -> Mapping[str, object]:
    return {
        "name": shown(axis.column, 60),
        "note": " (by rank)" if axis.even else "",
        "places": [place for place, _ in axis.ticks],
        "texts": [shown(label, 40) for _, label in axis.ticks],
    }


def _drawing(drawing: Drawing, axes: Sequence[Axis]) -> Mapping[str, object]:
    return {
        "count": len(drawing.drawn),
        "low": [packed(drawing.low[axis.column]) for axis in axes],
        "high": [packed(drawing.high[axis.column]) for axis in axes],
    }


def _question(question: DrawnQuery, axes: Sequence[Axis], drawings: Sequence[Drawing]) -> Mapping[str, object]:
    boxes = {str(at): question.boxes[axis.column] for at, axis in enumerate(axes) if axis.column in question.boxes}
    return {
        "boxes": boxes,
        "reads": [packed_bits(mask) for mask in question.reads],
        "said": [_said(question, at, drawing) for at, drawing in enumerate(drawings)],
    }


def _commit(number: int, drawings: Sequence[Drawing]) -> Mapping[str, object]:
    masks = [drawing.added_by == number for drawing in drawings]
    said = [
        f"Added {int(mask.sum()):,} of the {len(mask):,} files drawn." if mask.any() else "Added none of these files."
        for mask in masks
    ]
    return {"reads": [packed_bits(mask) for mask in masks], "said": said}


def _heading(drawing: Drawing) -> str:
    version = "" if drawing.version is None else f" (version {drawing.version})"
    return f"{shown(drawing.label, 80)}{version}: {plural(drawing.files, 'file')}, {size_text(drawing.bytes)}"


def _said(question: DrawnQuery | None, number: int, drawing: Drawing) -> str:
    if question is None:
        return ""
    read, share = question.files[number], share_text(question.shares[number])
    return f"The query reads {read:,} of {plural(drawing.files, 'file')}: {share} of the bytes."


def _label(picture: Picture, first: DrawnQuery | None) -> str:
    columns = " and ".join(shown(axis.column, 60) for axis in picture.axes[:2])
    asked = "" if first is None else "; files that a query reads stand out"
    return f"files as rectangles over {columns}{asked}"


def _caption(picture: Picture, axes: Sequence[Axis], questions: Sequence[DrawnQuery]) -> Html:
    sentences = [
        "A rectangle is a file: it reaches from the smallest to the largest value that its metadata tells. A query "
        "must read every file that its box touches, so small rectangles beside each other are good, and large ones on "
        "top of each other are not."
    ]
    if any(axis.even for axis in axes):
        sentences.append(
            "Where an axis is by rank, values lie at even distances, as their order tells, and not their size."
        )
    unknown = [shown(axis.column, 60) for axis in axes if axis.has_unknown]
    if unknown:
        which = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more columns" if len(unknown) > 3 else "")
        sentences.append(f"Files without statistics of {which} cover the whole axis: any value may be in them.")
    some = [each for each in picture.drawings if len(each.drawn) < each.files]
    if some:
        drawn = ", ".join(f"{len(each.drawn):,} of {each.files:,}" for each in some)
        sentences.append(f"To stay fluid, {drawn} files are drawn, chosen at random; the numbers are of all files.")
    if len(axes) < len(picture.axes):
        sentences.append(f"To stay small, the page holds {len(axes)} of {len(picture.axes)} columns.")
    if questions and len(questions) < len(picture.questions):
        sentences.append(f"{len(questions):,} of {len(picture.questions):,} queries can be chosen, the first ones.")
    return element("p", text(" ".join(sentences), 2000))


def _choices(
    axes: Sequence[Axis], questions: Sequence[DrawnQuery], commits: Sequence[tuple[int, str]]
) -> Sequence[Choice]:
    columns = [(str(at), shown(axis.column, 80)) for at, axis in enumerate(axes)]
    second = "1" if len(axes) > 1 else _BY_NUMBER
    choices = [
        Choice("across", "Across", [("", columns)], "0"),
        Choice("up", "Up", [("", [*columns, (_BY_NUMBER, "files, one above another")])], second),
    ]
    queries = [(f"q{at}", query_text(question.text)) for at, question in enumerate(questions)]
    added = [(f"c{at}", label) for at, (_, label) in enumerate(commits)]
    if queries or added:
        groups = [("", [("", "nothing")]), ("Queries", queries), ("Commits", added)]
        chosen = "q0" if queries else ""
        choices.append(Choice("marked", "Stands out", [group for group in groups if group[1]], chosen))
    return choices


def _legend(first: DrawnQuery | None, commits: Sequence[tuple[int, str]]) -> Html:
    if first is None and not commits:
        return swatches(("file", "file"))
    meaning = "file that the query reads" if not commits else "file that the query reads, or that the commit added"
    asked = [("asked", "what the query asks for")] if first is not None and first.boxes else []
    return swatches(("file", "file"), ("read", meaning), *asked)


def _numbers(picture: Picture, axes: Sequence[Axis]) -> TableBlock:
    """Return the mean width of files as a table."""
    rows = [
        TableRow(
            axis.column,
            [Cell(_width(drawing.low[axis.column], drawing.high[axis.column])) for drawing in picture.drawings],
        )
        for axis in axes
    ]
    heads = [Heading("column", kind="text"), *(Heading(shown(drawing.label, 60)) for drawing in picture.drawings)]
    return TableBlock("Widths", "How wide a file is in the mean, as a part of the axis.", heads, rows)


def _width(low: UInt16Array, high: UInt16Array) -> str:
    wide = high.astype(np.float64) - low
    return "-" if not (wide >= 0).any() else share_text(float(wide[wide >= 0].mean()) / LAST_PLACE)


# --- Depth -----------------------------------------------------------------------------------------------------------


def depth_chart(versions: Sequence[tuple[str, int, Sequence[Depth]]]) -> Chart | None:
    """Draw a histogram of the files' depths in a column that readers choose.

    Each version of the table has its label, its number of files and its depths; files of only nulls have no depth.
    """
    columns = list(dict.fromkeys(depth.column for _, _, depths in versions for depth in depths if depth.histogram))
    if not columns:
        return None
    depth_of = {(label, depth.column): depth for label, _, depths in versions for depth in depths}
    labels, files = [label for label, _, _ in versions], [count for _, count, _ in versions]
    data = {
        "kind": "depths",
        "labels": [shown(label, 60) for label in labels],
        "columns": [_depths(column, [depth_of.get((label, column)) for label in labels], files) for column in columns],
    }
    first = _deep([depth_of.get((label, columns[0])) for label in labels], files)
    return Chart(
        id="depths",
        label=f"files by depth in {shown(columns[0], 60)}",
        caption=element(
            "p",
            text(
                "A file's depth is the largest number of files that share one value within its range: about so many "
                "are read to find it. Well clustered, most files have a depth of 1 or 2."
            ),
        ),
        data=data,
        numbers=_depth_table(columns, labels, depth_of),
        plots=[("", first)],
        choices=[
            Choice("column", "Column", [("", [(str(at), shown(each, 80)) for at, each in enumerate(columns)])], "0")
        ],
    )


def _depths(column: str, depths: Sequence[Depth | None], files: Sequence[int]) -> Mapping[str, object]:
    classes = _classes(depths)
    return {
        "column": shown(column, 60),
        "classes": [_class_text(end) for end in classes],
        "counts": [[0 if depth is None else depth.histogram.get(end, 0) for end in classes] for depth in depths],
        "said": _deep(depths, files),
    }


def _classes(depths: Sequence[Depth | None]) -> list[int]:
    return sorted({end for depth in depths if depth is not None for end in depth.histogram})


def _class_text(end: int) -> str:
    """Name a class of depths by its end: up to 16, one depth each; beyond, from above half of the end.

    >>> _class_text(3), _class_text(64)
    ('3', '33 to 64')
    """
    return f"{end:,}" if end <= 16 else f"{end // 2 + 1:,} to {end:,}"


def _deep(depths: Sequence[Depth | None], files: Sequence[int]) -> str:
    """Say depths beside the share that a look-up reads: of fewer, larger files fewer overlap, and yet more is read."""
    known = [(depth, count) for depth, count in zip(depths, files, strict=True) if depth is not None]
    means = " → ".join(f"{depth.average_depth:,.1f}" for depth, _ in known)
    read = " → ".join(_lookup(depth, count) for depth, count in known)
    left = [count - sum(depth.histogram.values()) for depth, count in known]
    nulls = f" Nulls alone, without a depth: {' → '.join(plural(each, 'file') for each in left)}." if any(left) else ""
    return f"Mean depth {means}; a look-up of one value reads {read}.{nulls}"


def _lookup(depth: Depth, files: int) -> str:
    of_files = f" ({share_text(min(depth.lookup_files / files, 1.0))})" if files else ""
    share = of_files if depth.lookup_share is None else f" ({share_text(depth.lookup_share)} of the bytes)"
    return f"{depth.lookup_files:,.1f} of {plural(files, 'file')}{share}"


def _depth_table(
    columns: Sequence[str], labels: Sequence[str], depth_of: Mapping[tuple[str, str], Depth]
) -> TableBlock:
    rows = []
    for column in columns:
        depths = [depth_of.get((label, column)) for label in labels]
        for end in _classes(depths):
            counts = [Cell("-" if depth is None else f"{depth.histogram.get(end, 0):,}") for depth in depths]
            rows.append(TableRow(column, counts, [f"depth {_class_text(end)}"]))
    heads = [Heading("column and depth", kind="text"), *(Heading(shown(label, 60)) for label in labels)]
    return TableBlock("Depths", "Files by depth.", heads, rows)
