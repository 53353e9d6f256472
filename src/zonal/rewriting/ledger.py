"""Keep a table's ledger: one entry per run that committed, with what arrived since the run before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Literal

import pyarrow.compute as pc

from zonal.history.records import LedgerRecord
from zonal.history.store import History
from zonal.layouts.layout import Layout, short_text
from zonal.rewriting.done import Done
from zonal.rewriting.learned import Predicted
from zonal.snapshot import Snapshot
from zonal.upkeep.account import account_of, goes_back
from zonal.upkeep.freshness import lookup_shares
from zonal.upkeep.tallies import Tallies, Tally, tallies_of

RunKind = Literal["first", "merge", "layout", "append", "copy"]


@dataclass(frozen=True, eq=False)
class LedgerEntry:
    """A run that committed, with the table after it."""

    run: str
    kind: RunKind
    done: Done
    layout: Layout
    after: Snapshot
    predicted: Predicted | None = None
    """What the queries of a log read, where one was given."""

    @cached_property
    def shares(self) -> tuple[float, float] | None:
        """Return what look-ups read, and would read of a fresh layout."""
        return lookup_shares(self.after, self.layout)

    def keep(self, history: History) -> None:
        """Add the run to the table's ledger; what takes time is done before the ledger is locked."""
        _ = self.shares
        history.keep_ledger(self.after.location, self.entries)

    def entries(self, known: Sequence[LedgerRecord]) -> list[LedgerRecord]:
        """Return what the ledger lacks: this run, and those that it hasn't heard of or knows fewer commits of.

        What is in the table and arrived nobody knows when counts for this run.
        """
        tallies = tallies_of(self.after)
        records = {record.run: record for record in known}
        others = [record for record in _news(self.after, tallies, records) if record.run != self.run]
        found = [*others, self._own(tallies, records)]
        records.update({record.run: record for record in found})
        account = account_of(self.after, list(records.values()))
        runs = records.keys() if not tallies.whole else {tally.run for tally in tallies.runs} | {self.run}
        lacking = account.arrived - account.waiting - sum(records[run].arrived_bytes for run in runs)
        own = found[-1]
        return [*others, replace(own, arrived_bytes=own.arrived_bytes + max(lacking, 0))]

    def _own(self, tallies: Tallies, records: dict[str, LedgerRecord]) -> LedgerRecord:
        told = _by_log(self.after, self._tally(tallies), tallies, records)
        shares = self.shares or (None, None)
        asked = self.predicted
        return replace(
            told,
            kind=self.kind,
            finished=datetime.now(timezone.utc),
            removed_files=self.done.change.removed_files,
            added_files=self.done.change.added_files,
            layout=short_text(str(self.layout)),
            lookup_share=shares[0],
            fresh_lookup_share=shares[1],
            queries=None if asked is None else asked.queries,
            query_share=None if asked is None else asked.share_after,
            fresh_query_share=None if asked is None else asked.share_predicted,
        )

    def _tally(self, tallies: Tallies) -> Tally:
        """Return the run as the commits tell it; where these are gone already, as it knows itself."""
        own = next((tally for tally in tallies.runs if tally.run == self.run), None)
        if own is not None and len(own.versions) >= len(self.done.versions):
            return own
        size, brings = self.done.change.added_bytes, self.kind in ("append", "copy")
        arrived, rewritten = (size, 0) if brings else (0, size)
        return Tally(self.run, self.done.versions, None, arrived, None, rewritten, brings, exact=False)


def _news(after: Snapshot, tallies: Tallies, records: dict[str, LedgerRecord]) -> Iterator[LedgerRecord]:
    """Yield runs that another history has, or that ended before they could be kept, by what the commits tell."""
    for tally in tallies.runs:
        known = records.get(tally.run)
        if known is None:
            yield _by_log(after, tally, tallies, records)
        elif known.commits < len(tally.versions):
            told = _by_log(after, tally, tallies, records)
            names = ("version", "finished", "commits", "arrived_bytes", "arrived_rows", "rewritten_bytes", "exact")
            yield replace(known, **{name: getattr(told, name) for name in names})


def _by_log(after: Snapshot, tally: Tally, tallies: Tallies, records: dict[str, LedgerRecord]) -> LedgerRecord:
    """Return a run as the commits tell it; what arrived before the first of them is known only if they go back far."""
    known = records.get(tally.run)
    is_first = not tallies.runs or tally.run == tallies.runs[0].run
    reaches = not is_first or (known is not None and known.exact) or goes_back(tallies, list(records.values()))
    return LedgerRecord(
        table=after.name,
        location=after.location,
        format=after.format,
        version=tally.versions[-1],
        finished=tally.time or datetime.now(timezone.utc),
        run=tally.run,
        kind="append" if tally.brings else "rewrite",
        commits=len(tally.versions),
        arrived_bytes=tally.arrived_bytes,
        arrived_rows=tally.arrived_rows,
        rewritten_bytes=tally.rewritten_bytes,
        exact=tally.exact and reaches,
    )


def kind_of_run(before: Snapshot, after: Snapshot, layout: Layout) -> RunKind:
    """Tell what a rewrite was for: the first clustering, a move to another layout, or a merge."""
    if before.location != after.location:
        return "copy"
    if before.files.layout_ids.null_count == len(before.files):
        return "first"
    return "layout" if _bytes_in_others(before, layout) > _bytes_in_others(after, layout) else "merge"


def _bytes_in_others(snapshot: Snapshot, layout: Layout) -> int:
    other = pc.fill_null(pc.not_equal(snapshot.files.layout_ids, layout.id), False)
    return int(snapshot.files.sizes[other.to_numpy(zero_copy_only=False)].sum())
