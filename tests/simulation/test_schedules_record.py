"""Default schedules: other layouts of clustered tables, recorded among faults and other writers."""

from simulation.default import hold, schedules


@schedules("record-delta", "record-iceberg")
def test_a_schedule_leaves_tables_whole_and_messages_true(kind, seed):
    hold(kind, seed)
