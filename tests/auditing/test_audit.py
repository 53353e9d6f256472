"""`audit` over the life of a table: its numbers are those of the files' own footers, and it blames who did it."""

import pytest

import zonal
from support.audit_life import HOPELESS, QUERIES, STAGES, Life
from support.audits import asked_of, at
from zonal.errors import ZonalError
from zonal.verbs.audit import audit_versions

RUNS = sum(asked.count for asked in (*QUERIES, HOPELESS))


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def life(request, tmp_path_factory):
    """A table at the end of its life."""
    found = Life(request.param, tmp_path_factory.mktemp(request.param))
    found.until(STAGES[-1])
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_numbers_are_those_of_the_files_footers(life, stage):
    found, expected = at(life, stage), life.stages[stage]
    assert found.table.version == expected.version
    assert (found.table.files, found.table.bytes) == (len(expected.files), expected.bytes)
    assert found.reads.ratio == pytest.approx(expected.ratio()), "of the queries that statistics can help"
    assert found.reads.byte_share == pytest.approx(expected.byte_share()), "of all queries"
    assert found.workload.hindered == pytest.approx(HOPELESS.count / RUNS)
    by_source = {each.source: each for each in found.asked}
    assert len(by_source) == len(QUERIES) + 1
    line = 1
    for asked in (*QUERIES, HOPELESS):
        audited, read = by_source[f"queries.sql:{line}"], expected.read(asked)
        assert audited.reads.files == len(read)
        assert audited.reads.bytes == sum(file.size for file in read)
        assert audited.reads.partition_files == len(expected.files), "an unpartitioned table is one partition"
        assert audited.weight == pytest.approx(asked.count / RUNS)
        assert bool(audited.hindrance) == (asked is HOPELESS)
        line += asked.count


def test_what_is_read_for_nothing_is_never_more_than_what_is_read(life):
    for stage in STAGES:
        for asked in at(life, stage).asked:
            assert 0 <= asked.reads.excess_files <= asked.reads.files + 1e-9
            assert 0 <= asked.reads.excess_bytes <= asked.reads.bytes * (1 + 1e-9)


def test_clustering_is_worth_it_and_the_compaction_spoils_it(life):
    ratios = {stage: at(life, stage).reads.ratio for stage in STAGES}
    assert ratios["clustered"] < 0.3 < ratios["written"]
    assert ratios["compacted"] > 1.5 * ratios["appended"]


def test_the_compaction_is_blamed_with_its_commit_and_the_column(life):
    found = at(life, "compacted")
    assert found.judgment.alerts, "it reads more than the limit"
    assert found.blame.culprit is not None
    widest = found.blame.culprit.widths[0]
    assert widest.column == "x"
    assert widest.width == pytest.approx(life.stages["compacted"].mean_width())
    assert widest.before == pytest.approx(life.stages["appended"].mean_width())
    assert " widened x " in found.blame.culprit.sentence
    assert found.blame.culprit.writer.startswith("delta-rs" if life.kind == "delta" else ""), "PyIceberg leaves no name"
    assert str(found.blame.culprit.id) in found.blame.culprit.sentence


@pytest.mark.parametrize("stage", ["compacted", "deleted"])
def test_queries_are_held_against_the_version_from_before_the_compaction(life, stage):
    """A delete that rewrote the wide files is traced back, so that the version before it is no measure."""
    found, good, bad = at(life, stage), life.stages["appended"], life.stages[stage]
    assert found.blame.before.version == good.version
    assert found.blame.before.byte_share == pytest.approx(good.byte_share())
    shares = {each.source: (each.before_share, each.reads.byte_share) for each in found.asked}
    line, worse = 1, 0
    for asked in (*QUERIES, HOPELESS):
        before, now = (sum(file.size for file in each.read(asked)) / each.bytes for each in (good, bad))
        assert shares[f"queries.sql:{line}"] == pytest.approx((before, now))
        line, worse = line + asked.count, worse + (now > before + 0.001)
    assert found.blame.before.worse == worse > 0


def test_without_a_culprit_there_is_no_version_to_be_held_against(life):
    found = at(life, "clustered", picture=True)
    assert found.blame.before is None
    assert all(each.before_share is None for each in found.asked)
    assert [drawing.version for drawing in found.picture.drawings] == [
        life.stages["written"].version,
        found.table.version,
    ]


def test_nobody_is_blamed_right_after_clustering(life):
    found = at(life, "clustered")
    assert not found.judgment.alerts
    assert found.blame.culprit is None


def test_past_versions_are_audited_from_metadata_alone(life):
    count = sum(stage.versions for stage in life.stages.values())
    found = audit_versions(life.name, queries=zonal.Logs([life.log], cap=None), versions=count, **life.options)
    ratios = {each.table.version: each.reads.ratio for each in found}
    for stage in life.stages.values():
        assert ratios[stage.version] == pytest.approx(stage.ratio())
    assert [each.table.version for each in found][-1] == life.stages["deleted"].version
    assert len(audit_versions(life.name, queries=zonal.Logs([life.log], cap=None), versions=2, **life.options)) == 2
    with pytest.raises(ZonalError, match="versions=0 is not a positive number"):
        audit_versions(life.name, queries=[life.log], versions=0, **life.options)


def test_a_look_tells_what_matches_and_what_a_fresh_layout_brings(life):
    found = asked_of(life, look=True)
    stage = life.stages["deleted"]
    total = stage.rows.num_rows
    matching = {asked.sql: _matching(stage.rows, asked) / total for asked in QUERIES}
    by_weight = sum(matching[asked.sql] * asked.count for asked in QUERIES) + HOPELESS.count
    assert found.reads.selectivity == pytest.approx(by_weight / RUNS, rel=0.02), "the sample is the whole table"
    assert found.fresh.recorded
    assert found.fresh.byte_share < found.reads.byte_share
    assert found.fresh.gain == pytest.approx(1 - found.fresh.byte_share / found.reads.byte_share)
    assert all(each.selectivity <= each.reads.byte_share + 0.02 for each in found.asked)
    assert found.reads.row_group_share <= found.reads.byte_share + 1e-9


def test_a_version_by_number_is_predicted_as_the_newest_is(life):
    """How files are written, compressed above all, decides how many of them a layout is cut into."""
    newest, pinned = asked_of(life, look=True), at(life, "deleted", look=True)
    assert pinned.fresh == newest.fresh
    assert [each.fresh_share for each in pinned.asked] == [each.fresh_share for each in newest.asked]


def _matching(rows, asked):
    found = rows.to_pylist()
    return sum(all(low <= row[name] <= high for name, (low, high) in asked.ranges.items()) for row in found)
