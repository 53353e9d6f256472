"""What zonal must tell of a table that an official engine wrote; `case` is a table, and what the engine saw in it."""

import numpy as np

from interop.engine_checks import columns_of_other_types, kept_files, row_groups_lost, values_beyond_bounds
from zonal.snapshot import UNKNOWN


class EngineContract:
    """Tests that run on every version of every table of an engine."""

    def test_the_schema_is_the_engines(self, case):
        table, seen = case
        assert not columns_of_other_types(table.snapshot(), seen), "every column has the engine's place and type"

    def test_bounds_hold_for_every_value(self, case):
        table, seen = case
        beyond = list(values_beyond_bounds(table.snapshot(), seen))
        assert not beyond, "no value of the engine lies outside of its file's bounds"

    def test_pruning_keeps_every_file_with_a_matching_row(self, case, request, summary):
        table, seen = case
        kept = kept_files(table, seen)
        assert not kept.wrongly_skipped, "a file with a row that Spark finds is never skipped"
        assert kept.kept < kept.total, "some condition skips some file"
        summary.append(
            f"{table.snapshot().format} {request.node.callspec.id}: {len(seen.matching)} conditions, "
            f"zonal keeps {kept.kept} of {kept.total} files, {kept.matching} hold a matching row"
        )

    def test_row_groups_of_files_with_a_matching_row_are_kept(self, case):
        table, seen = case
        assert not row_groups_lost(table, seen), "a file with a row that Spark finds keeps a row group"

    def test_nothing_stands_in_the_way_of_a_rewrite(self, case):
        table, _ = case
        snapshot = table.snapshot()
        assert snapshot.blockers == (), "zonal can rewrite every one of these tables"
        assert snapshot.problems == (), "everything in these tables can be read"
        assert not np.isin(UNKNOWN, snapshot.files.rows), "the engine counts the rows of every file"
