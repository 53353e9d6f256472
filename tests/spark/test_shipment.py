"""What workers run travels by value, as to a cluster that has no zonal."""

import pytest
from pyspark import cloudpickle

from zonal.spark.shipment import carried
from zonal.worker.arrival.stage import stage_step
from zonal.worker.read.scan import scan_step
from zonal.worker.tasks import read_step, write_step


@pytest.mark.parametrize("step", [read_step, write_step, scan_step, stage_step])
def test_all_that_a_worker_runs_can_be_sent_to_it(step):
    """A lock, an open file or a connection anywhere in what the step refers to can't."""
    # Not loaded here: classes that come by value would replace the methods of this process's own.
    assert len(cloudpickle.dumps(carried(step))) > 10_000
