"""Which files one run rewrites, and what it may cost, as a value."""

import re
from dataclasses import dataclass, replace

from zonal.arguments import check_arguments
from zonal.errors import ZonalError, option
from zonal.upkeep.merges import MergeTerms
from zonal.values.sizes import Size, size_of

_MOST_AMPLIFICATION = 16


@dataclass(frozen=True)
class Scope:
    """Which files one run rewrites, and what it may cost.

    Arguments:
        where: rewrite only files that might hold a row for which this condition is true.
        full: rewrite files that are in the layout already, too.
        max_bytes: rewrite at most this much in one run, in bytes or as in `10GB`; by default, all that is due.
        commit_every: commit after about this much; by default, once, at the end.
        pays_within: merge files of a clustered table only where the queries of a log save as many bytes within this
            time as the merge rewrites: a number of scans of the table, or days as in `30d`; by default, 20 scans.
        max_amplification: the most bytes to rewrite per byte that arrived, the first clustering included; by default,
            3.

    Example:
        >>> plan = zonal.cluster("orders", by="id", scope=zonal.Scope(where="id > 3", max_bytes="1MB"), dry_run=True)
        >>> plan.change.commits
        1
    """

    where: str | None = None
    full: bool = False
    max_bytes: Size | None = None
    commit_every: Size | None = None
    pays_within: float | str | None = None
    max_amplification: float | None = None

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))

    @property
    def given(self) -> tuple[str, ...]:
        """Return the options that are set, by the names that messages have for them."""
        given = [name for name, value in vars(self).items() if value is not None and value is not False]
        return tuple("scope_where" if name == "where" else name for name in given)

    @property
    def most_bytes(self) -> int | None:
        """Return the most bytes that one run rewrites."""
        return size_of(self.max_bytes, "max_bytes")

    @property
    def commit_bytes(self) -> int | None:
        """Return the bytes after which a commit is due."""
        return size_of(self.commit_every, "commit_every")

    def terms(self, per_day: float | None = None) -> MergeTerms:
        """Return when a merge is worth its cost; a number of days needs to know the scans of one day."""
        terms = MergeTerms()
        if self.max_amplification is not None:
            if not 1 <= self.max_amplification <= _MOST_AMPLIFICATION:
                what = option("max_amplification", self.max_amplification)
                raise ZonalError(f"{what} is not between 1, which every row needs, and {_MOST_AMPLIFICATION}.")
            terms = replace(terms, amplification=float(self.max_amplification))
        scans = self._scans(per_day)
        return terms if scans is None else replace(terms, scans=scans)

    def _scans(self, per_day: float | None) -> float | None:
        if self.pays_within is None:
            return None
        given = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*(d?)", str(self.pays_within).strip().lower(), re.ASCII)
        if given is None or float(given[1]) <= 0:
            what = option("pays_within", self.pays_within)
            raise ZonalError(f"{what} is neither a number of scans, such as 20, nor of days, such as 30d.")
        if not given[2]:
            return float(given[1])
        return None if per_day is None else float(given[1]) * per_day
