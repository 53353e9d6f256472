"""Default schedules: clean-ups of tables among faults and other writers."""

from simulation.default import hold, schedules


@schedules("clean-delta", "clean-iceberg", "clean-delta-store", "clean-iceberg-store")
def test_a_schedule_leaves_tables_whole_and_messages_true(kind, seed):
    hold(kind, seed)
