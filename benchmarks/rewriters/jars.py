"""Find the official engines' jars in `ZONAL_JARS` or the user's cache, or fetch them with Maven."""

import os
import subprocess
import tempfile
from pathlib import Path

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
JARS = {
    "delta": ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0"),
}


def jars(engine: str) -> list[Path]:
    """Return the jars of an engine."""
    cache = Path(os.environ.get("ZONAL_JARS") or Path.home() / ".cache" / "zonal" / "jars")
    return [_jar(cache, artifact) for artifact in JARS[engine]]


def _jar(cache: Path, artifact: str) -> Path:
    _, name, version = artifact.split(":")
    jar = cache / f"{name}-{version}.jar"
    if not jar.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            command = ["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
            subprocess.run(command, cwd=folder, check=True, timeout=300)
            (Path(folder) / jar.name).replace(jar)
    return jar
