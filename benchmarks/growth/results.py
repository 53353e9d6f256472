"""Results of all policies: as JSON, as tables for terminal and docs, and as a figure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.growth.course import Course
from benchmarks.growth.figure import Line, draw
from benchmarks.growth.policies import ALL, ALWAYS

BEGIN, END = "<!-- measured -->", "<!-- end -->"


@dataclass(frozen=True)
class Results:
    """The courses of all policies that were measured; to be shown, the yardstick must be among them."""

    settings: dict[str, int] = field(default_factory=dict)
    courses: tuple[Course, ...] = ()
    one_more: tuple[Course, ...] = ()

    def with_(self, newer: "Results") -> "Results":
        """Add results with the same settings, which replace those of the same policy and share of late rows."""
        if self.settings and self.settings != newer.settings:
            raise SystemExit(f"These results have other settings: {self.settings}.")
        return Results(newer.settings, _replaced(self.courses, newer.courses), _replaced(self.one_more, newer.one_more))

    @property
    def has_yardstick(self) -> bool:
        """Whether there is a fresh clustering to compare with."""
        return any(course.policy == ALWAYS.name for course in self.courses)

    def late(self) -> list[float]:
        """List the shares of late rows, without any first."""
        return sorted({course.late for course in self.courses})

    def fresh(self, late: float) -> Course:
        """Return the yardstick."""
        return next(each for each in self.courses if each.policy == ALWAYS.name and each.late == late)

    def to_dict(self) -> dict[str, Any]:
        """Return the record for JSON."""
        kinds = ("courses", self.courses), ("one_more", self.one_more)
        return {"settings": self.settings} | {name: [each.to_dict() for each in some] for name, some in kinds}

    @classmethod
    def from_json(cls, text: str) -> "Results":
        """Read what `to_dict` gave."""
        record = json.loads(text)
        kinds = (tuple(Course.from_dict(each) for each in record[name]) for name in ("courses", "one_more"))
        return cls(record["settings"], *kinds)


def _replaced(older: tuple[Course, ...], newer: tuple[Course, ...]) -> tuple[Course, ...]:
    known = {(course.policy, course.late) for course in newer}
    return tuple(course for course in older if (course.policy, course.late) not in known) + newer


Cells = tuple[str, ...]


def growth_rows(results: Results) -> Iterator[Cells]:
    """Yield a heading, then one line per policy."""
    yield (
        "kept by",
        "late rows",
        "bytes rewritten per byte appended",
        "share read, of fresh",
        "worst",
        "files at the end",
    )
    for late in results.late():
        fresh = results.fresh(late)
        for course in _in_order(each for each in results.courses if each.late == late):
            over = course.over(fresh)
            numbers = f"{course.cost:.2f}", f"{np.mean(over):.3f}", f"{max(over):.3f}", f"{course.looks[-1].files}"
            yield _title(course), f"{late:.0%}", *numbers


def one_more_rows(results: Results) -> Iterator[Cells]:
    """Yield a heading, then one line per policy."""
    yield "kept by", "parts rewritten", "share read", "skipping, of a full rewrite's"
    (fresh,) = (each.looks[0].share for each in results.one_more if each.policy == ALWAYS.name)
    for course in _in_order(results.one_more):
        share = course.looks[0].share
        yield _title(course), f"{course.cost:.2f}", f"{share:.3f}", f"{(1 - share) / (1 - fresh):.1%}"


def _in_order(courses: "Sequence[Course] | Iterator[Course]") -> list[Course]:
    names = [policy.name for policy in ALL]
    return sorted(courses, key=lambda course: names.index(course.policy))


def _title(course: Course) -> str:
    return next(policy.title for policy in ALL if policy.name == course.policy)


def console_tables(results: Results) -> Iterator[Table]:
    """Draw both tables for the terminal."""
    for title, (heading, *rows) in _tables(results):
        table = Table(*(name for name in heading), title=title, title_justify="left")
        for row in rows:
            table.add_row(*(cell.replace("`", "") for cell in row))
        yield table


def _tables(results: Results) -> Iterator[tuple[str, list[Cells]]]:
    yield f"{results.settings['appends']} appends", list(growth_rows(results))
    yield "40 parts and one more", list(one_more_rows(results))


def write_docs(results: Results, folder: Path) -> None:
    """Replace the tables of growing.md, the figure and the numbers."""
    page = folder / "growing.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n\n".join(f"### {title}\n\n{_markdown(rows)}" for title, rows in _tables(results))
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}")
    (folder / "growing.svg").write_text(draw(lines(results)))
    (folder / "growing.json").write_text(json.dumps(results.to_dict(), separators=(",", ":")) + "\n")


def _markdown(rows: Sequence[Cells]) -> str:
    heading, *body = rows
    ruled = [heading, tuple("---" if at == 0 else "--:" for at in range(len(heading))), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in ruled)


def lines(results: Results) -> list[Line]:
    """Return what the figure draws of every course."""
    drawn = []
    for late in results.late():
        fresh = results.fresh(late)
        for course in _in_order(each for each in results.courses if each.late == late):
            times = [look.appends for look in course.looks]
            drawn.append(
                Line(course.policy, _title(course).replace("`", ""), late, course.cost, times, course.over(fresh))
            )
    return drawn
