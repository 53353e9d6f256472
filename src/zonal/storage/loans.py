"""Options of stores that a catalog lends for some time: asked for again before they expire, or where one is refused.

Only the process that opened the table can ask; others get what is valid when they are sent their work.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from threading import Lock

from zonal.errors import TableError, option
from zonal.storage.causes import is_refused
from zonal.storage.options import store_options

MARGIN = 300.0
"""Seconds before their end in which options are replaced, or a quarter of their time, where that is less."""
YOUNG = 60.0
"""Seconds for which options are new enough for work that begins, and for which a catalog isn't asked again."""
_ENDS = re.compile(r"s3\.session-token-expires-at-ms|gcs\.oauth2\.token-expires-at|adls\.sas-token-expires-at-ms\..+")
_EXPIRED = re.compile(r"expired", re.IGNORECASE)

Properties = Mapping[str, object]


def now() -> float:
    """Return the seconds since 1970."""
    return time.time()


@dataclass(frozen=True)
class _Lent:
    options: Mapping[str, str] = field(repr=False)
    since: float
    ends: float | None

    @classmethod
    def of(cls, properties: Properties) -> "_Lent":
        texts = [str(value) for name, value in properties.items() if _ENDS.fullmatch(name)]
        ends = [int(text) / 1000 for text in texts if re.fullmatch(r"\d{1,15}", text, re.ASCII)]
        return cls(store_options(properties), now(), min(ends, default=None))

    @property
    def is_due(self) -> bool:
        return self.ends is not None and now() >= self.ends - min(MARGIN, (self.ends - self.since) / 4)


class Loan:
    """What a catalog lent, and how it is asked for more; all that open files of the table share it."""

    def __init__(self, properties: Properties, ask: Callable[[], Properties]) -> None:
        self._ask, self._lock = ask, Lock()
        self._lent = self._sent = _Lent.of(properties)
        self._asked = now()

    def options(self) -> Mapping[str, str]:
        """Return what is valid now."""
        if self._lent.is_due:
            with self._lock:
                if self._lent.is_due and now() - self._asked > self._pause():
                    self._renew()
        return self._lent.options

    def sent(self) -> Mapping[str, str]:
        """Return what is given to other processes, which can't ask: as new as can be."""
        with self._lock:
            if self._lent.is_due or now() - self._lent.since > YOUNG:
                self._renew()
            self._sent = self._lent
        return self._lent.options

    def after(self, error: BaseException, used: Mapping[str, str]) -> bool:
        """Tell whether there are other options than those that a store refused with an error."""
        if not is_refused(error):
            return False
        with self._lock:
            if self._lent.options == used:
                self._renew()
            return self._lent.options != used

    def advice(self, error: BaseException) -> str:
        """Say what to do, where work of other processes failed for the end of what they were given; else nothing."""
        ends = self._sent.ends
        over = ends is not None and now() >= ends and is_refused(error)
        if not over and not _EXPIRED.search(str(error)):
            return ""
        when = "" if ends is None else f" at {datetime.fromtimestamp(ends, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
        return (
            f"The credentials that the catalog vended expired{when}, while workers used them. Nothing was lost: run it "
            f"again in smaller parts (a smaller {option('commit_every')}, fewer rows per append), each of which begins "
            f"with new ones, or give keys of your own with {option('storage_options')}."
        )

    def _pause(self) -> float:
        """Return for how many seconds the catalog isn't asked again; by its clock, all that it lends may be over."""
        span = YOUNG if self._lent.ends is None else self._lent.ends - self._lent.since
        return min(YOUNG, max(1.0, span / 8))

    def _renew(self) -> None:
        """Ask the catalog; where it can't be asked, what isn't over yet is kept."""
        self._asked = now()
        try:
            self._lent = _Lent.of(self._ask())
        except TableError as error:
            if self._lent.ends is None or now() < self._lent.ends:
                return
            raise TableError(
                f"The credentials that the catalog vended have expired, and it gives no others: {error}"
            ) from error
