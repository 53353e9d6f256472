"""Which of several commits are blamed, by widths made by hand."""

from datetime import datetime, timezone

from zonal.auditing.audit import CommitAudit, Width
from zonal.auditing.blame.culprits import culprits_of


def _culprits(widths, weights, read, files=None):
    commits = [
        CommitAudit(
            number, None, "delete", "", "", 1, 1, share, share, None, tuple(each), "",
            read_files_share=(files or read)[number], ids=(number,),
        )
        for number, (each, share) in enumerate(zip(widths, read, strict=True))
    ]  # fmt: skip
    return [each.id for each in culprits_of(commits, weights)]


def test_a_clustering_by_zonal_is_blamed_only_where_nobody_after_it_is():
    def made(number, kind, hour):
        time = datetime(2026, 1, 1, hour, tzinfo=timezone.utc)
        return CommitAudit(number, time, kind, "", "", 1, 1, 0.5, 0.5, 1, (Width("a", 0.5, 0.1),), "", ids=(number,))

    def blamed(*commits):
        return [each.id for each in culprits_of(commits, {"a": 1.0})]

    assert blamed(made(2, "zonal", 2)) == [2]
    assert blamed(made(2, "zonal", 2), made(3, "compaction", 3)) == [3]
    assert blamed(made(1, "compaction", 1), made(2, "zonal", 2)) == [1, 2], "what came before made nothing of it"


def test_a_commit_that_narrows_more_than_it_widens_is_no_culprit():
    weights = {"a": 0.5, "b": 0.5}
    mixed = [Width("a", 0.4, 0.2), Width("b", 0.1, 0.8)]
    wide = [Width("a", 0.4, 0.2), Width("b", 0.8, 0.8)]
    wider = [Width("a", 0.8, 0.2), Width("b", 0.8, 0.8)]
    assert _culprits([mixed], weights, [1.0]) == []
    assert _culprits([mixed, wide], weights, [0.8, 0.2]) == [1]
    assert _culprits([wide, wider], weights, [0.5, 0.5]) == [1, 0], "the worst first"
    assert _culprits([wide] * 5, weights, [0.2] * 5) == [0, 1, 2], "not more than can be read"
    assert _culprits([wide], weights, [0.05]) == [], "next to nothing is read of its files"
    assert _culprits([wide], weights, [0.05], [0.5]) == [0], "but they are many, though small"
    assert _culprits([[Width("a", 0.3, 0.2)]], weights, [1.0]) == [], "half as wide again is no blame"
    assert _culprits([[Width("a", 0.3, None)]], weights, [1.0]) == [], "nothing to compare with"
    assert _culprits([[Width("c", 0.4, 0.1)]], weights, [1.0]) == [], "no query filters it"
