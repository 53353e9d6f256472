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

    def room(self, amplification: float) -> float:
        """Return how many bytes may still be rewritten under a bound."""
        return math.inf if not self.arrived else amplification * self.arrived - self.rewritten


def account_of(snapshot: Snapshot, ledger: Sequence[LedgerRecord] = ()) -> Account:
    """Add up a table's commits; what expired ones did is told by the ledger, or unknown, and then counts as nothing."""
    tallies = tallies_of(snapshot)
    known = {record.run: record for record in that_count(tallies, ledger)}
    told = {tally.run: tally for tally in tallies.runs}
    after = {tally.run: tally for tally in tallies.after({run: record.version for run, record in known.items()})}
    arrived, rewritten = tallies.since.arrived_bytes, 0
    for run in {**known, **told}:
        both = [each for each in (known.get(run), after.get(run)) if each is not None]
        commits = told.get(run, Tally())
        arrived += max(commits.arrived_bytes, sum(each.arrived_bytes for each in both))
        rewritten += max(commits.rewritten_bytes, sum(each.rewritten_bytes for each in both))
    told_all = [each.exact for each in known.values()] + [each.exact for each in (*after.values(), tallies.since)]
    goes_back = tallies.goes_back_to({record.version for record in known.values()})
    exact = goes_back and all(told_all)
    arrived = arrived if exact else max(arrived, int(snapshot.files.sizes.sum()))
    return Account(arrived, rewritten, tallies.since.arrived_bytes, exact)


def that_count(tallies: Tallies, ledger: Sequence[LedgerRecord]) -> list[LedgerRecord]:
    """Return the entries of a ledger that are of the table as it is.

    Where all commits are there, only their runs are: others were rolled back, or of an older table in the same place.
    """
    told = {(tally.run, tally.versions[-1]) for tally in tallies.commits}
    return [record for record in ledger if not tallies.whole or (record.run, record.version) in told]
