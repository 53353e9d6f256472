"""Connect to object stores; an error says within seconds why one doesn't answer."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

import pyarrow.fs

from zonal.storage.causes import STORAGE_ERRORS, is_silent
from zonal.storage.environment import in_environment, key_file
from zonal.storage.ranged import RangedS3
from zonal.storage.store import ATTEMPTS, Store

PATIENCE = 10.0
"""Seconds within which a store must answer once; afterwards, the more generous limits of long jobs apply."""
KNOWN_TO_ANSWER = 60.0
"""Seconds for which a store that has answered isn't probed again."""
GCS_RETRIES = timedelta(minutes=2)
AZURE_CHOICE = "AZURE_TOKEN_CREDENTIALS"
"""Which of its ways to a token Azure's library tries: `prod` leaves out the tools of developers."""

Result = TypeVar("Result")


def connect(store: Store, path: str) -> pyarrow.fs.FileSystem:
    """Return a file system whose store has answered a request for a path; a `TableError` says why it doesn't.

    Denied access to the path, or an unknown path, is an answer, too.
    """
    return _connect(store, path.partition("/")[0], int(monotonic() / KNOWN_TO_ANSWER), _Probe(path))


@dataclass(frozen=True)
class _Probe:
    """A path to request; all probes are equal, so that one answer of a store stands for every path."""

    path: str = field(compare=False)


@lru_cache(maxsize=64)
def _connect(store: Store, bucket: str, _minute: int, probe: _Probe) -> pyarrow.fs.FileSystem:
    arguments = dict(store.arguments)
    limit = max(PATIENCE, 2 * arguments.get("request_timeout", 0) + arguments.get("connect_timeout", 0))
    try:
        return within(limit, lambda: _answering(store, bucket, arguments, probe.path))
    except TimeoutError:
        raise store.problem(TimeoutError(f"It didn't answer within {limit:g} seconds")) from None
    except (*STORAGE_ERRORS, ValueError, TypeError, AttributeError, ImportError) as error:
        raise store.problem(error) from None


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Do work that may never end in a thread; after so many seconds, leave it alone and raise a `TimeoutError`."""
    answers: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put((True, work()))
        except BaseException as error:  # raised in the waiting thread
            answers.put((False, error))

    Thread(target=run, daemon=True).start()
    try:
        done, outcome = answers.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if not done:
        raise outcome
    result: Result = outcome
    return result


def _answering(store: Store, bucket: str, arguments: dict[str, Any], path: str) -> pyarrow.fs.FileSystem:
    kind = store.kind
    if kind == "s3":
        if "region" not in arguments and not _environment_has_region() and "endpoint_override" not in arguments:
            arguments = arguments | _region_of(bucket)
        answer = _probe(_s3(arguments, hasty=True), path)
        if answer is not None and "region" not in arguments and re.search(r"HTTP status (301|307|400)", str(answer)):
            arguments = arguments | _region_of(bucket)  # the environment's region is that of other buckets
        return _s3(arguments).of(store)
    if kind == "gs":
        _probe(_gcs(arguments, timedelta(seconds=max(1, PATIENCE // 4))), path)
        return _gcs(arguments, GCS_RETRIES)
    filesystem = _azure(arguments) if kind == "abfss" else pyarrow.fs.FileSystem.from_uri(f"{kind}://{store.host}/")[0]
    _probe(filesystem, path)
    return filesystem


def _probe(filesystem: pyarrow.fs.FileSystem, path: str) -> Exception | None:
    """Request a path; return an error that is an answer, and raise any other."""
    try:
        filesystem.get_file_info(path)
    except STORAGE_ERRORS as error:
        if is_silent(error):
            raise
        return error
    return None


def _s3(arguments: dict[str, Any], *, hasty: bool = False) -> RangedS3:
    limits: dict[str, Any] = {
        "retry_strategy": pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=2 if hasty else ATTEMPTS),
        # A small file is one request instead of three, and one that fails leaves no upload without an end.
        "allow_delayed_open": True,
    }
    if hasty:
        # Two attempts stay below the patience: the process ends only when the last request has ended.
        limits |= {"connect_timeout": PATIENCE * 0.3, "request_timeout": PATIENCE * 0.35}
    given = {name: value for name, value in arguments.items() if name != "profile"}
    profile = {"AWS_PROFILE": arguments["profile"]} if "profile" in arguments else {}
    with in_environment(profile):
        return RangedS3(**(limits | given))


def _gcs(arguments: dict[str, Any], retries: timedelta) -> pyarrow.fs.FileSystem:
    given = {name: value for name, value in arguments.items() if name != "key"}
    if "key" not in arguments:
        return pyarrow.fs.GcsFileSystem(**given, retry_time_limit=retries)
    with key_file(arguments["key"]) as path, in_environment({"GOOGLE_APPLICATION_CREDENTIALS": path}):
        return pyarrow.fs.GcsFileSystem(**given, retry_time_limit=retries)


def _azure(arguments: dict[str, Any]) -> pyarrow.fs.FileSystem:
    """Connect; where there is no `az`, ask services alone for a token, as running it would print a shell's error."""
    has_choice = AZURE_CHOICE in os.environ or shutil.which("az") is not None
    with in_environment({} if has_choice else {AZURE_CHOICE: "prod"}):
        return pyarrow.fs.AzureFileSystem(**arguments)


def _environment_has_region() -> bool:
    return bool(os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))


def _region_of(bucket: str) -> dict[str, str]:
    """Return the region of a bucket by AWS; empty where it isn't told, so that the file system looks for one itself."""
    try:
        return {"region": pyarrow.fs.resolve_s3_region(bucket)}
    except (*STORAGE_ERRORS, ValueError):
        return {}
