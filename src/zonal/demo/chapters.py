"""What a demonstration tells: the chapters of each table's story, with the results that they were told from."""

from dataclasses import dataclass
from pathlib import Path

from zonal.demo.questions import Question, QuestionReads
from zonal.verbs.explain import Explanation

StyledLine = tuple[str, str]
"""A text and its style."""


@dataclass(frozen=True)
class Chapter:
    """One step of a table's story, in words that a newcomer understands."""

    heading: str
    lines: tuple[StyledLine, ...]
    result: object = None
    """What the verb returned, or what was measured."""


@dataclass(frozen=True)
class Compared:
    """What the questions read before and after a rewrite."""

    questions: tuple[Question, ...]
    before: tuple[QuestionReads, ...]
    after: tuple[QuestionReads, ...]
    explained: tuple[Explanation, Explanation] | None
    """One query before and after, where the questions are SQL."""

    @property
    def shares(self) -> tuple[float, float]:
        """Return the share of the table's bytes that a query reads on average, before and after."""
        weights = [len(question.conditions) for question in self.questions]
        before, after = (
            sum(read.share * weight for read, weight in zip(each, weights, strict=True)) / sum(weights)
            for each in (self.before, self.after)
        )
        return before, after


@dataclass(frozen=True)
class Compacted:
    """A compaction by another tool, by the files' sizes alone."""

    deed: str
    version_word: str
    """What the table's format calls a version."""
    version: int | None
    files_before: int
    files_after: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """The whole story of one table."""

    format: str
    chapters: tuple[Chapter, ...]
    page: Path
    """The page of the audit that matters most: the one after the compaction."""
