"""Jars of Maven Central: from ZONAL_JARS or the user's cache, and fetched where they are missing."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def jar(artifact):
    """Return the path of a jar, `GROUP:NAME:VERSION`; the test is skipped where it can't be had."""
    cache = Path(os.environ.get("ZONAL_JARS") or Path.home() / ".cache" / "zonal" / "jars")
    _, name, version = artifact.split(":")
    found = cache / f"{name}-{version}.jar"
    if found.exists():
        return found
    if shutil.which("mvn") is None:
        pytest.skip(f"{found.name} is not in {cache}, and there is no mvn to fetch it.")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = ["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
        try:
            fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Maven took more than 300 seconds for {artifact}.")
        if fetched.returncode or not (Path(folder) / found.name).exists():
            pytest.skip(f"Maven can't get {artifact}: {fetched.stdout[-500:].strip()}")
        (Path(folder) / found.name).replace(found)
    return found
