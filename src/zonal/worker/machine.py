"""What this machine has for this process: processors and memory, as far as its container grants them."""

import os
from contextlib import suppress
from pathlib import Path


def processors() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes(*, unknown: int) -> int:
    """Return how much memory this process may use; `unknown` where the system doesn't say."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return unknown
    with suppress(OSError, ValueError):  # "max" in a container without a limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory
