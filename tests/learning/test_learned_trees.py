"""What `advise` predicts is what queries read after the rewrite, and what it picks is no worse than any curve.

Tables are rewritten for real, and held-out queries are matched against the bounds of their files.
"""

import shutil
from functools import cached_property

import numpy as np
import pytest

from support.learning_data import FILES, case_of, delta_table
from support.local_runner import run_here
from zonal import advise, cluster, open_table
from zonal.predicates.bind import bind
from zonal.sql.where import parse_where
from zonal.study.look import look_at
from zonal.study.sampling import SAMPLE_ROWS
from zonal.tables.registry import read_snapshot
from zonal.trials.prediction import predict
from zonal.trials.today import current, standing
from zonal.trials.trial import filtered_columns, trial_of
from zonal.workload.query import Workload

CURVES = ("zorder", "hilbert")
ERROR = 0.15
WORSE = 0.05
"""The part by which a prediction may be wrong, and by which the pick may read more than a curve."""


class Learned:
    """A table in the order in which its rows arrived, and the advice on it."""

    def __init__(self, name, folder):
        case = case_of(name)
        self.folder, self.rows = folder, case.data.num_rows
        self.table = delta_table(case, folder / "arrived")
        self.snapshot = read_snapshot(open_table(self.table))
        self.bounds = [bind(parse_where(text), self.snapshot.schema) for text in case.asked]
        self.weights = np.ones(len(self.bounds))
        self.advice = advise(
            self.table,
            queries=Workload.of(case.learned),
            target_file_size=int(self.snapshot.files.sizes.sum()) // FILES,
        )
        self._read = {}

    def best(self, kind):
        """The layout of a kind that reads least, as far as `advise` can tell."""
        found = (each for each in self.advice.candidates if each.kind == kind)
        return min(found, key=lambda each: each.reads.bytes).layout

    @cached_property
    def trial(self):
        """A sample of the table as it arrived, with the held-out queries."""
        columns = filtered_columns(self.bounds, self.weights, self.snapshot.schema)
        needed = standing(self.snapshot, self.bounds, self.weights).in_partition
        looked = look_at(open_table(self.table), self.snapshot, columns, needed, SAMPLE_ROWS)
        sizes = {"partition_rows": looked.partition_rows, "row_bytes": looked.row_bytes}
        return trial_of(looked.rows, self.bounds, self.weights, **sizes)

    def read(self, layout):
        """What these queries read, by the files' own bounds, of a table that is rewritten by the layout."""
        if layout not in self._read:
            copy = self.folder / f"copy-{len(self._read)}"
            shutil.copytree(self.folder / "arrived", copy)
            done = cluster(f"delta:{copy}", layout=layout, spark=run_here)
            assert (done.change.rows, done.change.removed_files) == (self.rows, len(self.snapshot.files))
            # As many as asked for by the bytes that arrived; packed ones may be fewer, and small files need more.
            assert 0.5 * FILES < done.change.added_files < 1.6 * FILES
            self._read[layout] = current(read_snapshot(open_table(f"delta:{copy}")), self.bounds, self.weights).mean
        return self._read[layout]


@pytest.fixture(scope="module", params=["flights", "tpch", "telemetry"])
def learned(request, tmp_path_factory):
    return Learned(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("kind", ["tree", *CURVES])
def test_queries_read_what_was_predicted(learned, kind):
    layout = learned.best(kind)
    predicted = predict(learned.trial, layout).mean
    assert predicted == pytest.approx(learned.read(layout), rel=ERROR)


def test_what_advise_picks_is_no_worse_than_the_best_curve(learned):
    least = min(learned.read(learned.best(kind)) for kind in CURVES)
    assert learned.read(learned.advice.best.layout) <= (1 + WORSE) * least
