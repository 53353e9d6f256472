"""Default schedules: Delta tables among faults and other writers."""

from simulation.default import hold, schedules


@schedules("delta", "delta-dv", "delta-carried", "delta-store")
def test_a_schedule_leaves_tables_whole_and_messages_true(kind, seed):
    hold(kind, seed)
