"""Find the archive of the JVM's classes from which a local session starts with less work.

Java loads, checks and links some 15,000 classes when Spark starts; from an archive it maps them into memory (class-data
sharing, JEP 350). An archive is for one Java and one Spark: its name has a digest of both, and Java starts without it
where a jar has another size or time than it had. Its name has a checksum, too, because Java crashes where the file was
cut off. `python -m zonal.spark.archive` makes one.
"""

import mmap
import os
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from zlib import crc32

from zonal.spark.java import Java

SUFFIX = ".jsa"
_OF_JAVA = ("release", "lib/modules", "lib/server/libjvm.so", "lib/server/classes.jsa")
_OF_CLASS_PATH = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""Variables that change what is on the class path."""


def archive_flags(java: Java) -> list[str]:
    """Return what lets a JVM start from the archive for this Java and the installed Spark, if there is one."""
    folder = archive_folder()
    if folder is None or not _is_own(folder, stat.S_IFDIR):
        return []
    for path in archives_for(java, folder):
        if _is_own(path, stat.S_IFREG) and path.name == archive_name(java, path):
            # Where Java takes another class path for the reason to go without, that is no news for the log.
            return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return []


def archive_folder() -> Path | None:
    """Return the folder of archives in the user's cache; None where Java could name no file in it, or has no home."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))  # a relative one is ignored, as the specification says
    try:
        cache = named if named.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return None if ":" in str(cache) else cache / "zonal" / "classes"  # Java takes a colon for the end of a file's name


def archives_for(java: Java, folder: Path) -> list[Path]:
    """Return the archives for this Java and the installed Spark, which may be damaged."""
    return sorted(folder.glob(f"{_digest(java)}-*{SUFFIX}"))


def archive_name(java: Java, content: Path) -> str:
    """Return the name of an archive for this Java and the installed Spark with this content."""
    with content.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else memoryview(b"") as view:
            return f"{_digest(java)}-{crc32(view):08x}{SUFFIX}"


def _digest(java: Java) -> str:
    """Tell this Java and the installed Spark, with what the environment adds, from all others."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415

    home = Path(_find_spark_home())
    about = [str(java.home), str(java.version), str(home)]
    about += [f"{name}={os.environ.get(name, '')}" for name in _OF_CLASS_PATH]
    about += _stamps(java.home / name for name in _OF_JAVA)
    about += _stamps(sorted((home / "jars").glob("*.jar")))
    return sha256("\n".join(about).encode(errors="surrogateescape")).hexdigest()[:32]


def _stamps(paths: Iterable[Path]) -> Iterator[str]:
    """Tell files' names, sizes and times; of one that isn't there, the name."""
    for path in paths:
        try:
            found = path.stat()
            yield f"{path.name} {found.st_size} {found.st_mtime_ns}"
        except OSError:  # noqa: PERF203 - a missing file is an answer
            yield path.name


def _is_own(path: Path, kind: int) -> bool:
    """Tell whether a file or folder is this user's, and no other may write to it: what it holds is run."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.getuid() and not found.st_mode & 0o022
