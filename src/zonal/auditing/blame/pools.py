"""Pool commits of which each alone may be too small to be blamed.

A stream spoils a clustered table by many appends; rewrites go from partition to partition, or rewrite files that
another commit had widened.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from zonal.auditing.audit import CommitAudit, Width
from zonal.auditing.blame.authors import in_common, plain, time_of, writer_of
from zonal.auditing.blame.culprits import harms, last_harmful
from zonal.auditing.blame.deeds import Deed
from zonal.auditing.blame.groups import Group
from zonal.auditing.blame.sentence import appends_sentence, rewrites_sentence
from zonal.auditing.blame.widths import Widths, widest_first
from zonal.auditing.origins import Origin
from zonal.snapshot import Commit


def pools_of(
    groups: Sequence[Group], deeds: Sequence[Deed], widths: Widths, weights: Mapping[str, float]
) -> Iterator[CommitAudit]:
    """Return commits that may be guilty together: the last appends, and rewrites of one kind by one writer."""
    replacing = {deed.group.id for deed in deeds if deed.kind != "append"}
    appends = [
        (group, group.commit)
        for group in groups
        if group.commit is not None
        and group.read_files > 0  # what nobody reads does no harm
        and group.id not in replacing
        and group.commit.kind == "append"
    ]
    if len(appends) > 1:
        yield from _last_appends(appends, widths, weights)
    alike: dict[object, list[Deed]] = defaultdict(list)
    for deed in deeds:
        if deed.is_compared and (commit := deed.group.commit) is not None:
            made = deed.kind, plain(commit.operation), writer_of(commit)
            since = deed.since if deed.origin is not None and not deed.origin.are_appends else made
            alike[deed.origin is None, since].append(deed)
    yield from (_rewrites(pool) for pool in alike.values() if len(pool) > 1)


def _last_appends(
    appends: Sequence[tuple[Group, Commit]], widths: Widths, weights: Mapping[str, float]
) -> Iterator[CommitAudit]:
    """Pool as many of the last appends as do most harm together; earlier ones were as narrow as the table is."""
    ordered = sorted(appends, key=lambda pair: time_of(pair[1]))
    groups = [group for group, _ in ordered]
    shares = np.array([[group.read, group.read_files] for group in groups])
    read = np.cumsum(shares[::-1], axis=0)[::-1].max(axis=1)  # of each append and all later ones
    harm = harms(read, widths.tails([group.files for group in groups]), weights)
    first = last_harmful(harm)
    if first is not None and first < len(groups) - 1:
        pool, commits = groups[first:], [commit for _, commit in ordered[first:]]
        files = np.sort(np.concatenate([group.files for group in pool]))
        wide = widths.among(files)
        yield _together(pool, commits, "append", wide, appends_sentence(commits, len(files), wide))


def _rewrites(pool: Sequence[Deed]) -> CommitAudit:
    pairs = [(each, each.group.commit) for each in pool if each.group.commit is not None]
    pairs.sort(key=lambda pair: time_of(pair[1]))
    pool, commits = [each for each, _ in pairs], [commit for _, commit in pairs]
    wide = widest_first(_mean_widths(pool))
    origin = _joined_origin([each.origin for each in pool if each.origin is not None])
    sentence = rewrites_sentence(commits, wide, origin, pool[0].word)
    since = pool[0].since if origin is None else origin.commits[0].id
    return replace(_together([each.group for each in pool], commits, pool[0].kind, wide, sentence), since=since)


def _joined_origin(origins: Sequence[Origin]) -> Origin | None:
    """Join the commits of origins of one kind."""
    if not origins:
        return None
    commits = {commit.id: commit for origin in origins for commit in origin.commits}
    return replace(origins[0], commits=tuple(sorted(commits.values(), key=time_of)))


def _mean_widths(pool: Sequence[Deed]) -> Iterator[Width]:
    """Yield mean widths, weighted by the bytes of each commit's files, of the columns that are known for all."""
    names = [each.column for each in pool[0].widths]
    known = [{width.column: width for width in each.widths} for each in pool]
    bytes_ = np.array([max(each.group.bytes, 1) for each in pool], np.float64)
    for name in names:
        found = [widths.get(name) for widths in known]
        before = [math.nan if width is None or width.before is None else width.before for width in found]
        now = [math.nan if width is None else width.width for width in found]
        if not np.isnan([now, before]).any():
            yield Width(name, float(np.average(now, weights=bytes_)), float(np.average(before, weights=bytes_)))


def _together(
    groups: Sequence[Group], commits: Sequence[Commit], kind: str, widths: tuple[Width, ...], sentence: str
) -> CommitAudit:
    """Add up commits, given in order of time."""
    return CommitAudit(
        id=None,
        time=commits[-1].time,
        kind=kind,
        operation=plain(in_common(commit.operation for commit in commits)),
        writer=in_common(map(writer_of, commits)),
        files=sum(len(group.files) for group in groups),
        bytes=sum(group.bytes for group in groups),
        read_share=sum(group.read for group in groups),
        excess_share=sum(group.excess for group in groups),
        replaced=None,
        widths=widths,
        sentence=sentence,
        read_files_share=sum(group.read_files for group in groups),
        since=commits[0].id,
        ids=tuple(commit.id for commit in commits),
    )
