"""The account of a table: bytes that arrived and bytes that zonal rewrote, by its commits and by its ledger."""

import math
from collections.abc import Sequence
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
    """Add up a table's commits; what expired ones did is told by the ledger, or unknown, and then counts as nothing."""
    tallies = tallies_of(snapshot)
    told = {tally.run: tally for tally in tallies.runs}
    known = {record.run: record for record in that_count(tallies, ledger)}
    pairs = [(known.get(run), told.get(run)) for run in {**known, **told}]
    arrived = sum(max(_number(pair, "arrived_bytes")) for pair in pairs) + tallies.since.arrived_bytes
    rewritten = sum(max(_number(pair, "rewritten_bytes")) for pair in pairs)
    runs = [record or tally for record, tally in pairs]
    first = known.get(tallies.runs[0].run) if tallies.runs else None
    covered = first is not None or goes_back(tallies, ledger)
    exact = covered and all(each.exact for each in (*runs, tallies.since) if each)
    arrived = arrived if exact else max(arrived, int(snapshot.files.sizes.sum()))
    return Account(arrived, rewritten, tallies.since.arrived_bytes, exact)


def that_count(tallies: Tallies, ledger: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """Return the entries of a ledger that are of the table as it is.

    Where all commits are there, only their runs are: others were rolled back, or of an older table in the same place.
    """
    told = {tally.run for tally in tallies.runs}
    return [record for record in ledger if not tallies.whole or record.run in told]


def _number(pair: tuple[LedgerRecord | None, Tally | None], name: str) -> list[int]:
    return [getattr(each, name) for each in pair if each is not None]


def goes_back(tallies: Tallies, ledger: Sequence[LedgerRecord]) -> bool:
    """Tell whether the commits go back to the table's first one, or to one of the ledger's runs."""
    return tallies.whole or (tallies.start is not None and any(each.version == tallies.start for each in ledger))
