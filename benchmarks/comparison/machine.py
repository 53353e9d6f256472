"""What a comparison runs on: the machine, and the versions of everything that takes part."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import zonal
from benchmarks.rewriters.jars import JARS
from zonal.spark.java import find_java

PACKAGES = ("deltalake", "duckdb", "numpy", "polars", "pyarrow", "pyiceberg", "pyspark")


def machine() -> dict[str, Any]:
    """Return processors and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    return {"cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory / 2**30), "processor": model}


def versions(*, spark: bool) -> dict[str, str]:
    """Return the versions of Python, zonal, the packages and, where Spark takes part, Java and the jars."""
    found = {"python": platform.python_version(), "zonal": zonal.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # noqa: PERF203 - a handful of names
            continue
    if spark:
        found["java"] = str(find_java().version)
        for artifact in (artifact for artifacts in JARS.values() for artifact in artifacts):
            _, name, number = artifact.split(":")
            found[name] = number
    return found
