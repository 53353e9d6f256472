"""Equi-depth codes of values: their rank among the rows of a sample, scaled to the full width of the key.

code(x) = ⌊2^bits · (rows below x) / rows⌋, so that equal shares of the rows get equal shares of the codes, whatever the
distribution: five values use the top bits, and an outlier takes no room from the others. Equal values share a code,
codes never decrease as values grow, and code 0 belongs to nulls alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import ColumnError, RanksError, quoted
from zonal.layouts.sort import run_starts
from zonal.layouts.steps import Knots, Lookup
from zonal.values.arrays import UInt32Array, UInt64Array
from zonal.values.columns import find, leaf, leaf_type
from zonal.values.packed import pack, unpack
from zonal.values.words import blocks, comparable, decoded_array, family_of, plain_array, validity, words_in, words_of

MAX_KNOTS = 4096
_MAX_WORDS = 128
"""A value that needs more than 128 words (1 KB) to be told from its neighbors is no knot."""
_KEPT_WORDS = 4
"""Words (32 bytes) that a knot keeps where all values are knots; a quantile keeps only those that tell it apart."""

JSON_VERSION = 1


@dataclass(frozen=True, eq=False)
class ColumnRanks:
    """The ranks of one column: at most 4,096 knots between which codes are interpolated.

    `below[i]` counts the sample's rows below knot i, nulls included. `spread[i]` tells that the rows from knot i up to
    the next one have several values, or one that occurred once: codes then rise evenly to the next knot's. Otherwise
    knot i is one repeated value, and the codes stay.
    """

    family: str
    rows: int
    words: tuple[UInt64Array, ...]
    depths: npt.NDArray[np.int64]
    below: npt.NDArray[np.int64]
    spread: npt.NDArray[np.bool_]
    slot: int = 0
    """The number of this range, where several ranges are ranked apart."""
    slots: int = 1
    """The number of equal parts into which the codes are divided, one per range: a power of two."""
    _lookups: dict[int, Lookup] = field(default_factory=dict, repr=False)

    def within(self, slot: int, slots: int) -> "ColumnRanks":
        """Return the same ranks with all codes in one of so many equal parts of their range; nulls stay 0."""
        return replace(self, slot=slot, slots=slots, _lookups={})

    @classmethod
    def fit(cls, sample: pa.ChunkedArray) -> "ColumnRanks":
        """Fit the ranks of a column to a sample of it, which may be empty or all null."""
        family = family_of(sample.type)
        if family is None:
            raise ColumnError(f"Values of type {sample.type} have no order to cluster by.")
        values = _values(sample)
        nulls = len(sample) - sum(len(chunk) for chunk in values)
        words, counts = _distinct_bytes(values) if family == "bytes" else _distinct(values, family)
        chosen, depths = _choose(words, counts)
        below = np.cumsum(counts) - counts + nulls
        last = np.append(chosen[1:], len(counts)) - 1
        return cls(
            family=family,
            rows=len(sample),
            words=tuple(
                np.where(depths > depth, word[chosen], np.uint64(0))
                for depth, word in enumerate(words[: int(depths.max(initial=0))])
            ),
            depths=depths,
            below=below[chosen],
            spread=(last > chosen) | (counts[chosen] == 1),
        )

    def codes(self, column: pa.ChunkedArray, bits: int, salt: int | None = None) -> UInt32Array:
        """Return each row's code, 0 ≤ code < 2^bits, and 0 for nulls alone.

        `salt` seeds a hash of the row's number by which the rows of one heavy value are spread over its share.
        """
        family = family_of(column.type)
        if family is None or not comparable(family, self.family):
            raise RanksError(f"The ranks were fitted on {self.family} values, not on {column.type}: fit them again.")
        result = np.empty(len(column), np.uint32)
        for start, block in blocks(column):
            rows = None if salt is None else _uniform(start, len(block), salt)
            result[start : start + len(block)] = self._block_codes(plain_array(block), bits, rows)
        return result

    def _block_codes(self, block: pa.Array, bits: int, salt: npt.NDArray[np.float64] | None) -> UInt32Array:
        if isinstance(block, pa.DictionaryArray):
            return self._dictionary_codes(block, bits, salt)
        result = self._lookup(bits).codes(words_of(block, self.family), len(block), salt)
        np.maximum(result, 1, out=result)
        if (valid := validity(block)) is not None:
            result[~valid] = 0
        return result

    def _dictionary_codes(
        self, block: pa.DictionaryArray, bits: int, salt: npt.NDArray[np.float64] | None
    ) -> UInt32Array:
        """Rank each value that the block uses once, however often it occurs."""
        indices = block.indices
        valid = validity(indices)
        positions = indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        dictionary = plain_array(block.dictionary)
        if len(dictionary) > len(block):
            used, positions = np.unique(positions, return_inverse=True)
            dictionary = dictionary.take(pa.array(used)) if len(dictionary) else dictionary
        if not len(dictionary):
            return np.zeros(len(block), np.uint32)
        low = self._block_codes(dictionary, bits, None)
        result: UInt32Array = low[positions]
        if salt is not None:
            high = self._block_codes(dictionary, bits, np.full(len(dictionary), np.nextafter(1.0, 0.0)))
            result += ((high - low + 1)[positions] * salt).astype(np.uint32)
            result[low[positions] == 0] = 0
        if valid is not None:
            result[~valid] = 0
        return result

    def _lookup(self, bits: int) -> Lookup:
        if bits not in self._lookups:
            width = max(2**bits // self.slots, 1)
            first = min(self.slot * width, 2**bits - width)
            top = first + width - 1
            codes = [min(first + int(below) * width // self.rows, top) for below in self.below]
            knots = Knots(self.words, self.depths, np.array(codes, np.uint32), self.spread)
            self._lookups[bits] = Lookup(knots, top=top)
        return self._lookups[bits]

    def to_dict(self) -> dict[str, Any]:
        """Return a compact form for JSON: under 40 KB for numbers, in general far less."""
        return {
            "family": self.family,
            "rows": self.rows,
            "depths": pack(self.depths),
            "words": [pack(word[self.depths > depth]) for depth, word in enumerate(self.words)],
            "below": pack(np.diff(self.below, prepend=0)),
            "spread": pack(self.spread.astype(np.int64)),
            **({"slot": [self.slot, self.slots]} if self.slots > 1 else {}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "ColumnRanks":
        """Read what `to_dict` wrote, as untrusted input: sizes are bounded and the knots' order is checked."""
        try:
            family, rows = str(stored["family"]), int(stored["rows"])
            depths = unpack(stored["depths"], MAX_KNOTS).view(np.int64)
            below = np.cumsum(unpack(stored["below"], MAX_KNOTS).view(np.int64))
            spread = unpack(stored["spread"], MAX_KNOTS) != 0
            packed = stored["words"]
            if not len(depths) == len(below) == len(spread) or len(packed) != depths.max(initial=0):
                raise ValueError("its parts have different lengths")
            if len(depths) and not 1 <= depths.min() <= depths.max() <= _MAX_WORDS:
                raise ValueError("a knot is empty or too long")
            words = [np.zeros(len(depths), np.uint64) for _ in packed]
            for depth, text in enumerate(packed):
                words[depth][depths > depth] = unpack(text, MAX_KNOTS)
            if not 0 <= rows < 2**48 or (np.diff(below, prepend=0, append=rows) < 0).any():
                raise ValueError("its counts of rows are not in order")
            order = np.lexsort(tuple(reversed(words))) if words else np.zeros(0)
            if (order != np.arange(len(order))).any():
                raise ValueError("its knots are not in order")
            slot, slots = map(int, stored.get("slot", (0, 1)))
            if not 0 <= slot < slots <= 2**16 or slots & (slots - 1):
                raise ValueError("its part of the codes is none")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise RanksError(f"The stored ranks can't be read: {error}. Fit them again.") from None
        return cls(family, rows, tuple(words), depths, below, spread, slot, slots)


class Ranks(Mapping[str, ColumnRanks]):
    """The ranks of several columns, by name; `Ranks.from_json(ranks.to_json())` gives the same codes.

    Example:
        >>> ranks = zonal.Ranks.fit(pa.table({"x": [3, 0, 2, 1]}), ["x"])
        >>> ranks.codes(pa.table({"x": [0, 3]}), "x", bits=2).tolist()
        [1, 3]
    """

    def __init__(self, columns: Mapping[str, ColumnRanks]) -> None:
        self._columns = dict(columns)

    @classmethod
    def fit(cls, sample: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> "Ranks":
        """Fit the ranks of these columns to a sample; one error names all unknown and unsuitable columns."""
        paths = bind(sample.schema, columns)
        return cls({name: ColumnRanks.fit(leaf(sample, path)) for name, path in paths.items()})

    def delayed(self, delays: Mapping[str, int], bits: int) -> "Ranks":
        """Return ranks by which each column enters a key of `bits` bits per column so many bits later.

        Its codes keep to the first 2^-k of their range; half of the bits always stay.
        """
        waits = {name: min(delays.get(name, 0), bits // 2) for name in self}
        return Ranks({name: each.within(0, 1 << waits[name]) if waits[name] else each for name, each in self.items()})

    def fit_for(self, data: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> bool:
        """Tell whether these columns of the data can be ranked: none is new, or has another type by now."""
        return all(
            name in self
            and (family := family_of(leaf_type(data.schema, find(data.schema, name)))) is not None
            and comparable(family, self[name].family)
            for name in columns
        )

    def codes(self, data: pa.RecordBatch | pa.Table, column: str, bits: int, salt: int | None = None) -> UInt32Array:
        """Return the codes of one column of the data."""
        if column not in self._columns:
            raise RanksError(f"Column {quoted(column)} has no ranks: fit them again.")
        values = leaf(data, find(data.schema, column))
        try:
            return self._columns[column].codes(values, bits, salt)
        except RanksError as error:
            raise RanksError(f"Column {quoted(column)}: {error}") from None

    def to_json(self) -> str:
        """Write the ranks as compact JSON."""
        columns = {name: ranks.to_dict() for name, ranks in self._columns.items()}
        return json.dumps({"version": JSON_VERSION, "columns": columns}, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Ranks":
        """Read what `to_json` wrote."""
        try:
            stored = json.loads(text)
            version, columns = stored["version"], stored["columns"].items()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise RanksError("The stored ranks are not the JSON that zonal writes. Fit them again.") from None
        if version != JSON_VERSION:
            raise RanksError(f"The stored ranks have version {quoted(str(version))}, not {JSON_VERSION}. Update zonal.")
        return cls({name: ColumnRanks.from_dict(ranks) for name, ranks in columns})

    def __getitem__(self, name: str) -> ColumnRanks:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def bind(schema: pa.Schema, columns: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Resolve the columns in a schema; one error names all unknown and unsuitable ones."""
    paths: dict[str, tuple[int, ...]] = {}
    problems = []
    for name in columns:
        try:
            path = find(schema, name)
        except ColumnError as error:
            problems.append(str(error))
            continue
        kind = leaf_type(schema, path)
        if family_of(kind) is None:
            hint = "Name one of its fields with a dot" if pa.types.is_struct(kind) else "Cluster by another column"
            problems.append(f"Column {quoted(name)} has type {quoted(str(kind))}, which has no order. {hint}.")
        paths[name] = path
    if problems:
        raise ColumnError(" ".join(problems))
    return paths


def _values(sample: pa.ChunkedArray) -> list[pa.Array]:
    """Return the sample's values without nulls, as plain arrays."""
    decoded = [decoded_array(chunk) for chunk in sample.chunks]
    return [chunk.drop_null() if chunk.null_count else chunk for chunk in decoded]


def _distinct(values: Sequence[pa.Array], family: str) -> tuple[list[UInt64Array], npt.NDArray[np.int64]]:
    """Return the sorted distinct values of a family with a fixed number of words, and how often each occurs."""
    parts = [words_of(chunk, family) for chunk in values if len(chunk)]
    if not parts:
        return [], np.zeros(0, np.int64)
    words = [np.concatenate([part.at(depth) for part in parts]) for depth in range(words_in(family))]
    if len(words) == 1:
        words[0].sort()
    else:
        order = np.lexsort(words[::-1])
        words = [word[order] for word in words]
    starts = run_starts(words)
    return [word[starts] for word in words], np.diff(starts, append=len(words[0]))


def _distinct_bytes(values: Sequence[pa.Array]) -> tuple[list[UInt64Array], npt.NDArray[np.int64]]:
    """Return the sorted distinct byte sequences, each up to `_MAX_WORDS` words, and how often each occurs."""
    as_binary = pa.chunked_array([chunk.cast(pa.large_binary()) for chunk in values], pa.large_binary())
    counted = as_binary.value_counts()
    distinct = counted.field("values")
    order = pc.sort_indices(distinct)
    distinct = distinct.take(order)
    counts = counted.field("counts").take(order).to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(distinct):
        return [], counts
    longest = min(-(-pc.max(pc.binary_length(distinct)).as_py() // 8), _MAX_WORDS)
    words = words_of(distinct, "bytes")
    return [words.at(depth) for depth in range(max(longest, 1))], counts


def _choose(
    words: Sequence[UInt64Array], counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Choose the values that become knots, all or about 4,096 quantiles, and how many words each keeps."""
    total = int(counts.sum())
    if len(counts) <= MAX_KNOTS:
        chosen = np.arange(len(counts))
    else:
        # A value of two quantile steps or more swallows at least one of them; the knot after it, which ends its
        # share exactly, takes that place. With the largest value there are never more than MAX_KNOTS.
        steps = MAX_KNOTS - 1
        quantiles = np.searchsorted(np.cumsum(counts), np.arange(steps) * total // steps, side="right")
        after_heavy = np.flatnonzero(counts * steps >= 2 * total) + 1
        chosen = np.unique(np.minimum([*quantiles, *after_heavy, len(counts)], len(counts) - 1))
    if not len(chosen):
        return chosen, np.zeros(0, np.int64)
    shared = np.zeros(len(counts) + 1, np.int64)  # words that each value has in common with the one before it
    if len(words) > 1:
        same = np.ones(len(counts) - 1, np.bool_)
        for word in words:
            same &= word[1:] == word[:-1]
            shared[1:-1] += same
    needed = np.maximum(shared[chosen], shared[chosen + 1]) + 1
    kept = needed <= len(words)
    least = min(_KEPT_WORDS, len(words)) if len(counts) <= MAX_KNOTS else 1
    return chosen[kept], np.maximum(needed[kept], least)


def _uniform(start: int, rows: int, seed: int) -> npt.NDArray[np.float64]:
    """Return one number per row, from 0 to below 1: the splitmix64 hash of the row's number and the seed."""
    x = np.arange(start, start + rows, dtype=np.uint64) + np.uint64(seed)
    x *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
