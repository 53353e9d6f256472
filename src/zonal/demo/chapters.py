"""The demonstration as values: what happened to a table, chapter by chapter, every number measured."""

from dataclasses import dataclass
from pathlib import Path

from zonal.advising.advice import Advice
from zonal.auditing.audit import Audit
from zonal.demo.questions import Question, QuestionReads
from zonal.rewriting.outcome import Clustering
from zonal.verbs.explain import Explanation
from zonal.verbs.show import TableHealth


@dataclass(frozen=True)
class Arrived:
    """A table as its rows arrived: `show`."""

    health: TableHealth


@dataclass(frozen=True)
class Advised:
    """What to do with it, by a log of queries: `advise`."""

    advice: Advice
    log: Path


@dataclass(frozen=True)
class Rewritten:
    """A rewrite on Spark: `cluster`."""

    clustering: Clustering
    again: bool
    """Whether the layout is the one that the table recorded before."""
    version_word: str
    """What the table's format calls a version."""


@dataclass(frozen=True)
class Compared:
    """What the questions read before and after: `explain`."""

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
class Audited:
    """What all queries read, compared with the audits before: `audit`."""

    audit: Audit
    ratios: tuple[float | None, ...]
    """Of all audits so far, this one last."""


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
class Left:
    """The end of the story of a table that is best left as it is."""


Chapter = Arrived | Advised | Rewritten | Compared | Audited | Compacted | Left


@dataclass(frozen=True)
class Outcome:
    """The whole story of one table."""

    format: str
    chapters: tuple[Chapter, ...]
    page: Path
    """The page of the audit that matters most: the one after the compaction."""
