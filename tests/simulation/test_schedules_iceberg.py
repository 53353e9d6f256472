"""Default schedules: Iceberg tables among faults and other writers."""

from simulation.default import hold, schedules


@schedules("iceberg1", "iceberg2", "iceberg3", "iceberg-carried")
def test_a_schedule_leaves_tables_whole_and_messages_true(kind, seed):
    hold(kind, seed)
