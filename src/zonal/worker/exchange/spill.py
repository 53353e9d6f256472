"""Keep what one step of a rewrite has for the other, by task: in memory while it is little, then in a temporary file.

The file has no name in any folder, so that nothing of it stays, however the process ends.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from threading import Lock

import numpy as np
import pyarrow as pa

from zonal.errors import ZonalError, quoted

MEMORY = 64 * 1024**2
"""Bytes that are kept in memory."""


class Spill:
    """Record batches by task, which is their first column; several threads may put and take at once."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._file = tempfile.SpooledTemporaryFile(max(memory, 1), prefix="zonal-")  # noqa: SIM115 - closed by `close`
        self._lock = Lock()
        self._schema: pa.Schema | None = None
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)

    @property
    def tasks(self) -> list[int]:
        """Return the tasks that something was put for."""
        return sorted(self._places)

    def put(self, batch: pa.RecordBatch) -> None:
        """Keep the records of a batch; all batches have one schema."""
        tasks = batch.column(0).to_numpy()
        starts = np.flatnonzero(np.append(True, tasks[1:] != tasks[:-1])) if len(tasks) else np.zeros(0, np.int64)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(tasks)], strict=False):
            message = batch.slice(start, end - start).serialize()
            with self._lock:
                self._schema = batch.schema
                self._places[int(tasks[start])].append((self._written(message), message.size))

    def take(self, task: int) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task, in the order in which they were put."""
        for start, size in self._places[task]:
            with self._lock:
                self._file.seek(start)
                data = self._file.read(size)
            yield pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)

    def close(self) -> None:
        """Forget everything."""
        self._file.close()

    def _written(self, message: pa.Buffer) -> int:
        """Write a message at the end of the file, and return where it begins."""
        try:
            start = self._file.seek(0, 2)
            self._file.write(message)
        except OSError as error:
            folder = quoted(tempfile.gettempdir(), limit=200)
            raise ZonalError(
                f"Can't keep rows in {folder} until they are sorted: {error.strerror or error}. Set TMPDIR to a folder "
                "with more space, about as much as the files have that are rewritten."
            ) from error
        return start
