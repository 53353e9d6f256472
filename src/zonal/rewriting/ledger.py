"""Keep a table's ledger: one entry per run that committed, with what arrived since the run before it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import pyarrow.compute as pc

from zonal.history.records import LedgerRecord
from zonal.layouts.layout import Layout, short_text
from zonal.plan.file_size import sized
from zonal.rewriting.done import Done
from zonal.rewriting.learned import Predicted
from zonal.snapshot import Snapshot
from zonal.upkeep.account import account_of, that_count
from zonal.upkeep.freshness import lookup_shares
from zonal.upkeep.tallies import Tallies, Tally, sum_if_known, tallies_of

if TYPE_CHECKING:
    from zonal.history.store import History

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
        return lookup_shares(self.after, sized(self.layout, self.after))

    def keep(self, history: "History") -> None:
        """Add the run to the table's ledger; what takes time is done before the ledger is locked."""
        _ = self.shares
        history.keep_ledger(self.after.location, self.entries)

    def entries(self, known: Sequence[LedgerRecord]) -> list[LedgerRecord]:
        """Return what the ledger lacks: this run, and those that it hasn't heard of or knows fewer commits of.

        What is in the table and arrived nobody knows when counts for this run.
        """
        tallies = tallies_of(self.after)
        records = {record.run: record for record in that_count(tallies, known)}
        found = {record.run: record for record in _news(self.after, tallies, records)}
        own = self._own(found.get(self.run) or records.get(self.run), tallies)
        records |= found | {self.run: own}
        account = account_of(self.after, list(records.values()))
        lacking = account.arrived - account.waiting - sum(record.arrived_bytes for record in records.values())
        found[self.run] = replace(own, arrived_bytes=own.arrived_bytes + max(lacking, 0))
        return list(found.values())

    def _own(self, told: LedgerRecord | None, tallies: Tallies) -> LedgerRecord:
        """Return this run as the commits tell it, or as it knows itself where they have expired, with what it knows."""
        if told is None or told.commits < len(self.done.versions):
            told = _by_log(self.after, self._tally(), tallies, {})
        shares, asked = self.shares or (None, None), self.predicted
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

    def _tally(self) -> Tally:
        size, brings = self.done.change.added_bytes, self.kind in ("append", "copy")
        arrived, rewritten = (size, 0) if brings else (0, size)
        return Tally(self.run, self.done.versions, None, arrived, None, rewritten, brings, exact=False)


def _news(after: Snapshot, tallies: Tallies, records: Mapping[str, LedgerRecord]) -> Iterator[LedgerRecord]:
    """Yield runs of which the ledger lacks commits: they are kept elsewhere, still go on, or were killed."""
    for tally in tallies.after({run: record.version for run, record in records.items()}):
        told = _by_log(after, tally, tallies, records)
        if (known := records.get(tally.run)) is None:
            yield told
            continue
        yield replace(
            known,
            version=told.version,
            finished=told.finished,
            commits=known.commits + told.commits,
            arrived_bytes=known.arrived_bytes + told.arrived_bytes,
            arrived_rows=sum_if_known(known.arrived_rows, told.arrived_rows),
            rewritten_bytes=known.rewritten_bytes + told.rewritten_bytes,
            exact=known.exact and told.exact,
        )


def _by_log(after: Snapshot, tally: Tally, tallies: Tallies, records: Mapping[str, LedgerRecord]) -> LedgerRecord:
    """Return a run as the commits tell it; what arrived before the first of them is known only if they go back far."""
    is_first = not tallies.commits or tally.versions[0] == tallies.commits[0].versions[0]
    reaches = tallies.whole or any(record.version == tallies.start for record in records.values())
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
        exact=tally.exact and (reaches or not is_first),
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
