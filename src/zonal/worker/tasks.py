"""Run the two steps of a rewrite on workers: read and place rows, then sort and write them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from zonal.plan.placement import Placement
from zonal.plan.rewrite import Reading, ReadTally, Writing
from zonal.storage import Storage
from zonal.values.arrays import Int32Array, UInt64Array
from zonal.values.checksum import MODULUS, row_checksum
from zonal.worker.archives import forget_archives
from zonal.worker.exchange import results
from zonal.worker.exchange.dictionary import with_numbers
from zonal.worker.exchange.payload import TALLY, Form, decode, encode, records
from zonal.worker.read.reader import Reader
from zonal.worker.splits import Share, read_split
from zonal.worker.write.leaves import Odd
from zonal.worker.write.writer import FileWriter, sort_piece

CHUNK_BYTES = 48 * 1024**2
"""Bytes of rows in memory that are placed together: the more, the fewer and larger the payloads."""

Batches = Iterable[pa.RecordBatch]
WorkerStep = Callable[[Batches], Iterator[pa.RecordBatch]]


def read_step(reading: Reading, storage: Storage, placement: Placement) -> WorkerStep:
    """Return the step from splits (one JSON text per row) to payloads and tallies."""

    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        forget_archives()
        reader = Reader(reading, storage, encoded=placement.encoded)
        task_of_piece = placement.task_of_file[placement.file_of_piece]
        form = Form(reading.schema, placement.key_count, placement.few_valued)
        for batch in batches:
            for text in batch.column(0).to_pylist():
                chunk = _Chunk()
                counts: list[ReadTally] = []
                checksum = 0
                for share in read_split(text):
                    for rows in _placed(share, reader, placement, counts):
                        chunk.add(rows)
                        if chunk.size > CHUNK_BYTES:
                            yield chunk.encoded(task_of_piece, form, verify=placement.verify)
                            checksum += chunk.checksum
                            chunk = _Chunk()
                if chunk.parts:
                    yield chunk.encoded(task_of_piece, form, verify=placement.verify)
                    checksum += chunk.checksum
                yield _tallies(counts, checksum % MODULUS, placement.tasks)

    return read


@dataclass(frozen=True, eq=False)
class _Placed:
    partition: int
    data: pa.Table
    words: tuple[UInt64Array, ...]
    pieces: Int32Array


class _Chunk:
    def __init__(self) -> None:
        self.parts: list[_Placed] = []
        self.size = self.checksum = 0

    def add(self, part: _Placed) -> None:
        self.parts.append(part)
        self.size += part.data.nbytes

    def encoded(self, task_of_piece: np.ndarray, form: Form, *, verify: bool) -> pa.RecordBatch:
        parts = self.parts
        if len(parts) == 1:
            data, words, pieces = parts[0].data, parts[0].words, parts[0].pieces
        else:
            data = pa.concat_tables([part.data for part in parts])
            words = tuple(np.concatenate(each) for each in zip(*(part.words for part in parts), strict=True))
            pieces = np.concatenate([part.pieces for part in parts])
        numbered = with_numbers(data, form.few_valued)
        if verify:
            partitions = np.repeat([part.partition for part in parts], [part.data.num_rows for part in parts])
            self.checksum = row_checksum(numbered, partitions)
        return encode(numbered, words, pieces, task_of_piece, form)


def _placed(share: Share, reader: Reader, placement: Placement, counts: list[ReadTally]) -> Iterator[_Placed]:
    source = share.source
    read = live = 0
    for rows in reader.shared_rows(share):
        read += rows.read
        live += rows.data.num_rows
        if rows.data.num_rows:
            words, pieces = placement.place(rows.data, source.partition, rows.positions, source.number)
            yield _Placed(source.partition, rows.data, words, pieces)
    counts.append(ReadTally(source.number, read, live))


def _tallies(counts: list[ReadTally], checksum: int, tasks: int) -> pa.RecordBatch:
    """Send tallies along with the rows: Spark delivers both exactly once, whatever it repeats."""
    counts = [*counts[:-1], *(replace(tally, checksum=checksum) for tally in counts[-1:])]
    tasks_of = np.array([tally.source % tasks for tally in counts], np.int64)
    payloads = pa.array([results.tally_bytes(tally) for tally in counts], pa.binary())
    pieces = np.full(len(counts), TALLY, np.int32)
    return records(tasks_of, pieces, [0] * len(counts), payloads, [Odd()] * len(counts))


def write_step(schema: pa.Schema, writing: Writing, placement: Placement) -> WorkerStep:
    """Return the step from the payloads of a task to its new files; `schema` is that of the rows as they were read."""
    form = Form(schema, placement.key_count, placement.few_valued)

    def write(batches: Batches) -> Iterator[pa.RecordBatch]:
        forget_archives()
        held: dict[int, list[pa.Buffer]] = defaultdict(list)
        rows_of: dict[int, int] = defaultdict(int)
        odd_of: dict[int, Odd] = defaultdict(Odd)
        for batch in batches:
            _, pieces, counts, payloads, *odd = batch.columns
            tallies = [data.as_py() for piece, data in zip(pieces.to_pylist(), payloads, strict=True) if piece == TALLY]
            if tallies:
                yield results.tallies(tallies)
            lists = (column.to_pylist() for column in (pieces, counts, *odd))
            for payload, piece, count, nans, zeros in zip(payloads, *lists, strict=True):
                if piece != TALLY:
                    held[piece].append(payload.as_buffer())
                    file = int(placement.file_of_piece[piece])
                    rows_of[file] += count
                    odd_of[file] |= Odd(frozenset(nans), frozenset(zeros))
        files: dict[int, list[int]] = defaultdict(list)
        for piece in sorted(held):
            files[int(placement.file_of_piece[piece])].append(piece)
        for file, own_pieces in files.items():
            partition = int(placement.partition_of_file[file])
            writer = FileWriter(
                writing, placement.layout, partition, rows_of[file], odd_of[file], verify=placement.verify
            )
            try:
                for piece in own_pieces:
                    words, rows = decode(held.pop(piece), form)
                    writer.write(sort_piece(words, rows, placement.layout, writing.packing))
                writer.close()
            except BaseException:
                writer.abandon()
                raise
            yield results.written(writer.done)

    return write
