"""The account of a table: bytes that arrived and bytes that zonal rewrote, by its commits and by its ledger."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zonal.history.records import LedgerRecord
from zonal.snapshot import Snapshot
from zonal.upkeep.tallies import Tallies, Tally, tallies_of


@dataclass(frozen=True)
class Account:
    """What arrived and what was rewritten so far."""

    arrived: int
    """Bytes of data files that other writers added and that are known, at least those that are in the table."""
    rewritten: int
    """Bytes that zonal's own commits wrote, as far as the table's commits and its ledger tell."""
    waiting: int = 0
    """Bytes of those that arrived that did so since the last run."""
    exact: bool = False
    """Whether all commits are known, by themselves or by the ledger."""

    @property
    def amplification(self) -> float:
        """Return the bytes rewritten per byte that arrived."""
        return self.rewritten / self.arrived if self.arrived else 0.0

    @property
    def text(self) -> str:
        """Say it for people."""
        return f"{self.amplification:.2f} bytes"

    def room(self, amplification: float) -> float:
        """Return how many bytes may still be rewritten under a bound."""
        return math.inf if not self.arrived else amplification * self.arrived - self.rewritten


def account_of(snapshot: Snapshot, ledger: Sequence[LedgerRecord] = ()) -> Account:
    """Add up a table's commits; what expired ones did is told by the ledger, or unknown, and then counts as nothing.

    Where all commits are there, they alone count: the ledger may have entries of runs that were rolled back, or of an
    older table in the same place.
    """
    tallies = tallies_of(snapshot)
    known = {} if tallies.whole else {record.run: record for record in ledger}
    told = {tally.run: tally for tally in tallies.runs}
    pairs = [(known.get(run), told.get(run)) for run in {**known, **told}]
    arrived = sum(max(_number(pair, "arrived_bytes")) for pair in pairs) + tallies.since.arrived_bytes
    rewritten = sum(max(_number(pair, "rewritten_bytes")) for pair in pairs)
    runs = [record or tally for record, tally in pairs]
    exact = is_covered(tallies, known) and all(each.exact for each in (*runs, tallies.since) if each)
    arrived = arrived if exact else max(arrived, int(snapshot.files.sizes.sum()))
    return Account(arrived, rewritten, tallies.since.arrived_bytes, exact)


def _number(pair: tuple[LedgerRecord | None, Tally | None], name: str) -> list[int]:
    return [getattr(each, name) for each in pair if each is not None]


def is_covered(tallies: Tallies, known: Mapping[str, LedgerRecord]) -> bool:
    """Tell whether the commits go back to the table's first one, or to a run of the ledger."""
    if tallies.whole or (tallies.runs and tallies.runs[0].run in known):
        return True
    return tallies.start is not None and any(record.version == tallies.start for record in known.values())
