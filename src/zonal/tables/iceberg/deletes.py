"""Which deletes apply to a data file, by "Scan Planning" of the specification."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from zonal.tables.iceberg.field_ids import (
    CONTENT,
    CONTENT_OFFSET,
    CONTENT_SIZE,
    DELETE_PATH,
    EQUALITY_IDS,
    FORMAT,
    LOWER_BOUNDS,
    PARTITION,
    PATH,
    POSITION_DELETES,
    RECORDS,
    REFERENCED,
    UPPER_BOUNDS,
    Fields,
)

HashedPartition = tuple[object, ...]
"""A partition, hashable: the id of its spec, then pairs of partition field id and value."""


class Delete(NamedTuple):
    """A delete file or a deletion vector."""

    kind: Literal["vector", "position", "equality"]
    sequence: int
    rows: int
    key: HashedPartition
    target: str | None
    """The only data file it is about, where that is known."""
    paths: tuple[bytes, bytes] | None
    """Bounds of the paths of the data files it is about."""
    location: str
    format: str
    place: tuple[int, int] | None
    """Offset and length of a deletion vector in its file."""
    columns: tuple[int, ...]
    """Field ids of the columns that equality deletes compare."""


def partition_key(spec_id: int, file: Fields) -> HashedPartition:
    """Make the partition hashable; one NaN object stands for all, since tuples compare by identity first."""
    values = ((name, file[PARTITION][name]) for name in sorted(file[PARTITION]))
    return (spec_id, *((name, math.nan if value != value else value) for name, value in values))  # noqa: PLR0124


def delete_of(file: Fields, spec_id: int, sequence: int) -> Delete:
    """Tell what a delete file or deletion vector of a manifest is about."""
    kind: Literal["vector", "position", "equality"] = "equality"
    target, paths = None, None
    if file[CONTENT] == POSITION_DELETES:
        kind = "vector" if file[FORMAT].upper() == "PUFFIN" else "position"
        target = file.get(REFERENCED)
        lower = (file.get(LOWER_BOUNDS) or {}).get(DELETE_PATH)
        upper = (file.get(UPPER_BOUNDS) or {}).get(DELETE_PATH)
        if target is None and lower is not None and upper is not None:
            # "Delete Formats": equal bounds of file_path tell of one data file, as writers before version 3 do.
            paths = (lower, upper)
            target = lower.decode() if lower == upper else None
    offset, length = file.get(CONTENT_OFFSET), file.get(CONTENT_SIZE)
    return Delete(
        kind,
        int(sequence),
        int(file[RECORDS]),
        partition_key(spec_id, file),
        target,
        paths,
        file[PATH],
        file[FORMAT],
        None if offset is None or length is None else (int(offset), int(length)),
        tuple(file.get(EQUALITY_IDS) or ()),
    )


class DeleteIndex:
    """Deletes by what they can apply to; answers are positions in the sequence of deletes.

    `global_specs` are the partition specs without fields: equality deletes of such a spec apply to every partition.
    """

    def __init__(self, deletes: Sequence[Delete], global_specs: set[int]) -> None:
        self.deletes = deletes
        self._by_file: dict[str, list[int]] = defaultdict(list)
        by_partition: dict[HashedPartition, list[int]] = defaultdict(list)
        equality: dict[HashedPartition, list[int]] = defaultdict(list)
        for number, delete in enumerate(deletes):
            if delete.kind == "equality":
                equality[() if delete.key[0] in global_specs else delete.key].append(number)
            elif delete.target is not None:
                self._by_file[delete.target].append(number)
            else:
                by_partition[delete.key].append(number)
        self._by_partition = {key: _PathRanges(numbers, deletes) for key, numbers in by_partition.items()}
        self._equality = {key: sorted(numbers, key=self._sequence) for key, numbers in equality.items()}
        self._known: dict[tuple[HashedPartition, int], tuple[int, ...]] = {}

    def _sequence(self, number: int) -> int:
        return self.deletes[number].sequence

    def positions(self, path: str, sequence: int, key: HashedPartition) -> list[int]:
        """Return the deletion vector of a file, or else its position deletes: of its sequence number or a later one."""
        own = [number for number in self._by_file.get(path, ()) if self._sequence(number) >= sequence]
        # A deletion vector holds the position deletes before it, which then don't apply.
        if vectors := [number for number in own if self.deletes[number].kind == "vector"]:
            return vectors
        ranges = self._by_partition.get(key)
        return own if ranges is None else own + ranges.find(path, sequence)

    def equality(self, sequence: int, key: HashedPartition) -> tuple[int, ...]:
        """Return the equality deletes of a file: those with a strictly higher sequence number, the oldest first."""
        if not self._equality:
            return ()
        if (key, sequence) not in self._known:
            both = [self._equality.get(group, []) for group in ((), key)]
            later = [numbers[bisect_right(numbers, sequence, key=self._sequence) :] for numbers in both]
            self._known[key, sequence] = (*later[0], *later[1])
        return self._known[key, sequence]


class _PathRanges:
    """Position delete files of a whole partition, by the lower bounds of the paths that they are about."""

    def __init__(self, numbers: Sequence[int], deletes: Sequence[Delete]) -> None:
        ranges = [(*(deletes[number].paths or (b"", None)), deletes[number].sequence, number) for number in numbers]
        ranges.sort(key=lambda one: one[0])
        self._lower = [lower for lower, *_ in ranges]
        self._rest = [rest for _, *rest in ranges]

    def find(self, path: str, sequence: int) -> list[int]:
        """Return those that may name a file: of its sequence number or a later one, in the order of the deletes."""
        name = path.encode()
        before = self._rest[: bisect_right(self._lower, name)]
        return sorted(at for upper, own, at in before if own >= sequence and (upper is None or name <= upper))


def may_name(delete: Delete, path: str) -> bool:
    """Tell whether a position delete file of a whole partition can be about this data file, by its bounds."""
    lower, upper = delete.paths or (b"", None)
    return lower <= path.encode() and (upper is None or path.encode() <= upper)
