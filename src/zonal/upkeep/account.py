"""The account of a table: bytes that arrived and bytes that zonal rewrote, as far as its commits tell."""

import math
from dataclasses import dataclass

from zonal.snapshot import Snapshot


@dataclass(frozen=True)
class Account:
    """What arrived and what was rewritten so far."""

    arrived: int
    """Bytes of data files that other writers added and that are known, at least those that are in the table."""
    rewritten: int
    """Bytes that zonal's own commits wrote, as far as the table's history still tells."""

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


def account_of(snapshot: Snapshot) -> Account:
    """Add up a table's commits; what expired ones did is unknown, and counts as nothing."""
    others = [commit for commit in snapshot.commits.values() if commit.kind not in ("zonal", "compaction")]
    own = [commit for commit in snapshot.commits.values() if commit.kind == "zonal"]
    arrived = sum(commit.added_bytes or 0 for commit in others)
    rewritten = sum(commit.added_bytes or 0 for commit in own)
    return Account(max(arrived, int(snapshot.files.sizes.sum())), rewritten)
