"""Which deletes apply to a data file, by "Scan Planning" of the specification."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from zonal.tables.iceberg.manifests import Delete

_Key = tuple[object, ...]


class DeleteIndex:
    """Deletes by what they can apply to; answers are positions in the sequence of deletes.

    `global_specs` are the partition specs without fields: equality deletes of such a spec apply to every partition.
    """

    def __init__(self, deletes: Sequence[Delete], global_specs: set[int]) -> None:
        self._deletes = deletes
        self._by_file: dict[str, list[int]] = defaultdict(list)
        self._by_partition: dict[_Key, list[int]] = defaultdict(list)
        equality: dict[_Key, list[int]] = defaultdict(list)
        for number, delete in enumerate(deletes):
            if delete.kind == "equality":
                equality[() if delete.key[0] in global_specs else delete.key].append(number)
            elif delete.target is not None:
                self._by_file[delete.target].append(number)
            else:
                self._by_partition[delete.key].append(number)
        self._equality = {key: sorted(numbers, key=self._sequence) for key, numbers in equality.items()}
        self._known: dict[tuple[_Key, int], tuple[int, ...]] = {}

    def _sequence(self, number: int) -> int:
        return self._deletes[number].sequence

    def positions(self, path: str, sequence: int, key: _Key) -> list[int]:
        """Return the deletion vector of a file, or else its position deletes: of its sequence number or a later one."""
        own = [number for number in self._by_file.get(path, ()) if self._sequence(number) >= sequence]
        # A deletion vector holds the position deletes before it, which then don't apply.
        if vectors := [number for number in own if self._deletes[number].kind == "vector"]:
            return vectors
        return own + [
            number
            for number in self._by_partition.get(key, ())
            if self._sequence(number) >= sequence and may_name(self._deletes[number], path)
        ]

    def equality(self, sequence: int, key: _Key) -> tuple[int, ...]:
        """Return the equality deletes of a file: those with a strictly higher sequence number, the oldest first."""
        if (key, sequence) not in self._known:
            both = [self._equality.get(group, []) for group in ((), key)]
            later = [numbers[bisect_right(numbers, sequence, key=self._sequence) :] for numbers in both]
            self._known[key, sequence] = (*later[0], *later[1])
        return self._known[key, sequence]


def may_name(delete: Delete, path: str) -> bool:
    """Tell whether a position delete file of a whole partition can be about this data file, by its bounds."""
    lower, upper = delete.paths or (b"", None)
    return lower <= path.encode() and (upper is None or path.encode() <= upper)
