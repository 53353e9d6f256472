"""Divide the files of a rewrite into splits, one per worker task: small files together, large ones in parts."""

import base64
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import EqualityDelete, Scan, Source, Vector
from zonal.worker.problem import naming

SPLIT_BYTES = 16 * 1024**2
"""Bytes of data files that a task reads."""
PAYLOAD_BYTES = 64 * 1024
"""With very many new files splits grow, so that a payload from one split to one file has about this size."""


@dataclass(frozen=True)
class Share:
    """A file, or part `part` of `parts` of it: its row groups whose middle lies in that part of its bytes."""

    source: Source
    part: int = 0
    parts: int = 1


Split = tuple[Share, ...]

LARGE = 1024**3
"""Above this many bytes the storage is asked for a file's size, which decides how many parts the file is cut into."""


def refuse_wrong_sizes(scan: Scan) -> None:
    """Raise a `TableError` for a large file whose size in the storage differs from the metadata's."""
    large = [source for source in scan.sources if source.size > LARGE]
    if not large:
        return

    def stored_size(source: Source) -> int | None:
        with naming(source.path):
            filesystem, inside = scan.storage.locate(source.path)
            size: int | None = filesystem.get_file_info(inside).size
            return size

    with ThreadPoolExecutor(8) as pool:
        for source, size in zip(large, pool.map(stored_size, large), strict=True):
            if size is not None and size != source.size:
                raise TableError(
                    f"The file {quoted(source.path, limit=300)} has {size:,} bytes, and the table's metadata says "
                    f"{source.size:,}: one of them is damaged."
                )


def plan_splits(sources: Sequence[Source], new_files: int) -> list[Split]:
    """Divide the files, in order, into splits of about the same number of bytes."""
    target = max(SPLIT_BYTES, new_files * PAYLOAD_BYTES)
    splits: list[Split] = []
    held: list[Share] = []
    size = 0
    for share, share_bytes in _shares(sources, target):
        if held and size + share_bytes > target:
            splits.append(tuple(held))
            held, size = [], 0
        held.append(share)
        size += share_bytes
    return [*splits, tuple(held)] if held else splits


def _shares(sources: Sequence[Source], target: int) -> Iterator[tuple[Share, int]]:
    for source in sources:
        parts = max(1, round(source.size / target))
        for part in range(parts):
            yield Share(source, part, parts), source.size // parts


def row_groups_of(sizes: Sequence[int], part: int, parts: int) -> list[int]:
    """Return the row groups, given their sizes in order, that belong to one part of a file.

    Over all parts, every row group is in exactly one, whatever the sizes are.

    >>> [row_groups_of([10, 10, 10], part, 2) for part in range(2)]
    [[0], [1, 2]]
    """
    possible = [max(size, 0) for size in sizes]
    total = max(sum(possible), 1)
    numbers, before = [], 0
    for number, size in enumerate(possible):
        if min((2 * before + size) * parts // (2 * total), parts - 1) == part:
            numbers.append(number)
        before += size
    return numbers


def split_text(split: Split) -> str:
    """Serialize a split as JSON, for the worker that reads it."""
    return json.dumps([[_source_form(share.source), share.part, share.parts] for share in split])


def read_split(text: str) -> Split:
    """Read what `split_text` wrote."""
    return tuple(Share(_read_source(form), part, parts) for form, part, parts in json.loads(text))


def _source_form(source: Source) -> dict[str, Any]:
    form = asdict(replace(source, constants={}))
    form = {name: value for name, value in form.items() if value not in (None, (), {})}
    if source.vector is not None and source.vector.inline is not None:
        form["vector"]["inline"] = base64.b64encode(source.vector.inline).decode()
    if source.constants:
        batch = pa.record_batch({name: pa.array([value]) for name, value in source.constants.items()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        form["constants"] = base64.b64encode(sink.getvalue()).decode()
    return form


def _read_source(form: dict[str, Any]) -> Source:
    if vector := form.get("vector"):
        inline = vector.get("inline")
        form["vector"] = Vector(**{**vector, "inline": None if inline is None else base64.b64decode(inline)})
    if constants := form.get("constants"):
        batch = pa.ipc.open_stream(base64.b64decode(constants)).read_next_batch()
        form["constants"] = {name: batch.column(at)[0] for at, name in enumerate(batch.schema.names)}
    form["position_deletes"] = tuple(form.get("position_deletes", ()))
    form["equality_deletes"] = tuple(
        EqualityDelete(delete["location"], tuple(delete["field_ids"])) for delete in form.get("equality_deletes", ())
    )
    return Source(**form)
