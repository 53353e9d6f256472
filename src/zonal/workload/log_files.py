"""Files of query logs: found in folders, of known kinds, and opened decompressed."""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

import pyarrow as pa

from zonal.errors import quoted
from zonal.workload.query import LogError

LogKind = Literal["sql", "json", "csv", "parquet", "events"]

_KINDS: dict[str, LogKind] = {
    ".sql": "sql",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
_CODECS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".bz2": "bz2"}
_EVENT = re.compile(rb'\s*\{\s*"Event"\s*:\s*"')
_NAMED = "Logs are .sql, .jsonl, .json, .csv, .tsv or .parquet (also .gz and .zst), or Spark's event logs."

BROKEN = (OSError, EOFError, zlib.error, pa.ArrowException)
"""What reading compressed bytes raises where they are cut off or damaged."""


@dataclass(frozen=True)
class LogFile:
    """One log: a file, or the rolled event logs of a Spark application, in order."""

    name: str
    kind: LogKind
    paths: tuple[Path, ...]
    size: int


def find_logs(places: Sequence[str | os.PathLike[str]]) -> list[LogFile]:
    """Find the logs in files and folders; another file is a `LogError`, hidden files are ignored."""
    try:
        logs = [log for place in places for log in _logs_at(Path(os.fspath(place)))]
    except OSError as error:
        shown = quoted(os.fsdecode(error.filename or ""), limit=300)
        raise LogError(f"The query log {shown} can't be read: {error.strerror or error}.") from None
    if not logs:
        where = ", ".join(quoted(os.fspath(place)) for place in places) or "no files"
        raise LogError(f"There are no query logs in {where}. {_NAMED}")
    return logs


def _logs_at(path: Path) -> Iterator[LogFile]:
    if path.is_dir():
        if path.name.startswith("eventlog_v2_"):
            yield _rolled(path)
            return
        for inner in sorted(path.iterdir()):
            if not inner.name.startswith((".", "_")):
                yield from _logs_at(inner)
    elif path.is_file():
        path.open("rb").close()  # a file without permission is an error of its own, and not a damaged log
        yield LogFile(path.name, _kind(path), (path,), path.stat().st_size)
    else:
        raise LogError(f"There is no query log {quoted(str(path), limit=300)}.")


def _rolled(folder: Path) -> LogFile:
    """Return an application's rolled event logs as one; a compacted file replaces those before it."""
    named = [(re.match(r"events_(\d{1,9})_", path.name), path) for path in folder.iterdir()]
    numbered = [(int(match[1]), path.name.endswith(".compact"), path) for match, path in named if match]
    if not numbered:
        raise LogError(f"The folder {quoted(str(folder), limit=300)} has no event logs of Spark in it.")
    first = max((number for number, is_compact, _ in numbered if is_compact), default=0)
    kept = [(n, path) for n, is_compact, path in sorted(numbered) if n > first or is_compact]
    paths = tuple(path for _, path in kept)
    return LogFile(folder.name, "events", paths, sum(path.stat().st_size for path in paths))


def _suffixes(path: Path) -> tuple[str, str]:
    """Return the suffixes of a file's kind and of its compression."""
    name = path.name.lower().removesuffix(".inprogress").removesuffix(".compact")
    stem, ending = os.path.splitext(name)
    codec = ending if ending in _CODECS else ""
    return os.path.splitext(stem if codec else name)[1], codec


def _kind(path: Path) -> LogKind:
    try:
        with open_bytes(path) as stream:
            head = stream.read(4096)
    except BROKEN:
        head = b""
    if _EVENT.match(head):
        return "events"
    if head[:4] == b"PAR1":
        return "parquet"
    kind = _KINDS.get(_suffixes(path)[0])
    if kind is None and head.lstrip()[:1] == b"{":
        return "json"
    if kind is None:
        raise LogError(f"The file {quoted(str(path), limit=300)} is no query log that zonal knows. {_NAMED}")
    return kind


def open_bytes(path: Path) -> BinaryIO:
    """Open a file, decompressed."""
    codec = _CODECS.get(_suffixes(path)[1])
    if codec is None:
        return path.open("rb")
    with path.open("rb") as file:
        if file.read(8) == b"LZ4Block":
            raise LogError(
                f"The log {quoted(str(path), limit=300)} is compressed in Spark's own LZ4 format, which zonal doesn't "
                "read. Set spark.eventLog.compression.codec to zstd."
            )
    if codec == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return cast(BinaryIO, io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), codec), 1 << 16))


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a file as text: UTF-16 with a byte order mark, else UTF-8; invalid bytes become replacement characters."""
    stream = open_bytes(path)
    head = stream.peek(4)[:4] if hasattr(stream, "peek") else b""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")
