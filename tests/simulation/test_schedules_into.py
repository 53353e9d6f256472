"""Default schedules: copies of tables among faults and other writers."""

from functools import partial

import pytest

from simulation.default import hold, schedules
from simulation.delta_ledger import DeltaLedger
from simulation.events import Thing
from simulation.iceberg_ledger import IcebergLedger
from simulation.running import LEDGERS, run_schedule


@schedules("into")
def test_a_schedule_leaves_tables_whole_and_messages_true(kind, seed):
    hold(kind, seed)


@pytest.mark.parametrize(
    ("ledger", "act"),
    [(DeltaLedger, "recreate"), (DeltaLedger, "recreate_on_files"), (IcebergLedger, "recreate")],
)
def test_a_source_that_is_made_anew_at_any_moment_is_never_copied_in_part(monkeypatch, ledger, act):
    """Before each of the first events, which list, mark and read the source's metadata and its first rows."""
    monkeypatch.setitem(LEDGERS, "into", (ledger,))

    def at(count, _, table, __):
        return [Thing("any", count, act, meanwhile=partial(table.act, act))]

    for count in range(1, 10):
        verdict = run_schedule("into", 1, things=partial(at, count))
        assert not verdict.violations, (count, verdict.violations, verdict.told)
