"""Encode rows for the shuffle from the worker that reads them to the one that writes them: one Arrow message per piece.

Spark's shuffle then carries a few large binary values instead of rows. A payload is a record batch message of Arrow's
IPC format without the schema, which both sides know; its first columns are the rows' key words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from zonal.layouts.sort import stable_order
from zonal.values.arrays import Int32Array, Int64Array, UInt64Array
from zonal.values.selection import take_rows
from zonal.worker.exchange.dictionary import numbers_field, numbers_of, restored, values_of, values_schema
from zonal.worker.write.leaves import Odd, odd_leaves

COLUMNS = "task int, piece int, rows int, payload binary, nans array<int>, zeros array<int>"
"""Spark's schema of a record: a negative piece marks a tally; the last two columns list the leaves of `Odd`."""
TALLY = -1
_LEAVES = pa.list_(pa.int32())


class _Place(NamedTuple):
    """Where a message begins and ends in the stream, and what its rows are."""

    piece: int
    rows: int
    start: int
    end: int
    odd: Odd


@dataclass(frozen=True, eq=False)
class Form:
    """The format of payloads: schema of the rows, words per key, and columns that travel as dictionary indices."""

    schema: pa.Schema
    words: int
    few_valued: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> pa.Schema:
        """Return the schema of a payload's rows: key words, then the columns."""
        keys = [pa.field(f"key {number}", pa.uint64(), nullable=False) for number in range(self.words)]
        return pa.schema(
            [*keys, *(numbers_field(field) if field.name in self.few_valued else field for field in self.schema)]
        )

    @cached_property
    def values(self) -> pa.Schema:
        """Return the schema of the row with the dictionaries, which goes before a payload's rows."""
        return values_schema(self.schema, self.few_valued)


def encode(
    numbered: pa.Table, words: Sequence[UInt64Array], pieces: Int32Array, task_of_piece: Int64Array, form: Form
) -> pa.RecordBatch:
    """Return one record per piece, ordered by piece; the rows in a payload are in key order.

    Columns of few values must be dictionary-encoded by `with_numbers`.
    """
    order = stable_order(words)
    placed = pieces[order]
    if (placed[1:] < placed[:-1]).any():  # rows of several partitions, each with cuts of its own
        order = order[stable_order([placed.astype(np.uint64)])]
        placed = pieces[order]
    starts = np.flatnonzero(np.append(True, placed[1:] != placed[:-1]))
    ends = np.append(starts[1:], len(placed))
    taken = take_rows(numbers_of(numbered, form.few_valued), order)
    keys = [pa.array(word[order]) for word in words]
    whole = pa.Table.from_arrays([*keys, *taken.columns], schema=form.rows)
    odd = odd_leaves(numbered)  # most tables have none; then no payload is searched
    values = values_of(numbered, form.few_valued, form.values).serialize() if form.few_valued else b""
    # Other tasks use the other processors: more threads would only wait for each other.
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    sink = pa.BufferOutputStream()
    places: list[_Place] = []
    with pa.ipc.new_stream(sink, form.rows, options=options) as stream:
        stream.write_batch(whole.slice(0, 1).to_batches()[0].slice(0, 0))  # the schema goes out with the first batch
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            before = sink.tell()
            here = odd_leaves(taken.slice(start, end - start), odd) if odd != Odd() else odd
            for batch in whole.slice(start, end - start).combine_chunks().to_batches():
                sink.write(values)
                stream.write_batch(batch)
                places.append(_Place(int(placed[start]), batch.num_rows, before, sink.tell(), here))
                before = sink.tell()
    return _records(sink.getvalue(), places, task_of_piece)


def _records(buffer: pa.Buffer, places: Sequence[_Place], task_of_piece: Int64Array) -> pa.RecordBatch:
    """Cut the stream into its messages without copying: they are contiguous.

    Offsets begin at 0: older versions of pyarrow send others along with a buffer that is cut off.
    """
    first = places[0].start
    offsets = np.array([*(place.start - first for place in places), places[-1].end - first], np.int32)
    pieces = np.array([place.piece for place in places], np.int32)
    payloads = pa.Array.from_buffers(pa.binary(), len(places), [None, pa.py_buffer(offsets), buffer.slice(first)])
    odd = [place.odd for place in places]
    return records(task_of_piece[pieces], pieces, [place.rows for place in places], payloads, odd)


def records(
    tasks: Int64Array, pieces: Int32Array, rows: Sequence[int], payloads: pa.Array, odd: Sequence[Odd]
) -> pa.RecordBatch:
    """Build a batch of records with the columns of `COLUMNS`."""
    columns = [pa.array(tasks, pa.int32()), pa.array(pieces, pa.int32()), pa.array(rows, pa.int32()), payloads]
    columns += [
        pa.array([sorted(leaves) for leaves in each], _LEAVES)
        for each in ([one.nans for one in odd], [one.zeros for one in odd])
    ]
    return pa.RecordBatch.from_arrays(columns, names=["task", "piece", "rows", "payload", "nans", "zeros"])


def decode(payloads: Sequence[pa.Buffer], form: Form) -> tuple[list[UInt64Array], pa.Table]:
    """Return the key words and the rows of one piece; columns of few values are dictionary-encoded."""
    whole = pa.Table.from_batches([_rows(pa.BufferReader(payload), form) for payload in payloads])
    whole = whole.unify_dictionaries()
    keys: list[UInt64Array] = [whole.column(number).to_numpy() for number in range(form.words)]
    return keys, whole.select(range(form.words, len(form.rows)))


def _rows(source: pa.BufferReader, form: Form) -> pa.RecordBatch:
    values = pa.ipc.read_record_batch(pa.ipc.read_message(source), form.values) if form.few_valued else None
    rows = pa.ipc.read_record_batch(pa.ipc.read_message(source), form.rows)
    return rows if values is None else restored(rows, values)
