"""The process from which Spark forks its Python workers on this machine: it imports once what each of them needs.

Spark's own daemon takes pyspark from an archive without bytecode, which every start compiles again, and each worker
imports numpy, pyarrow and zonal for itself. The JVM of zonal's own session starts `python -m zonal.spark.daemon`.
"""

import gc
import os
import site
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

MODULE = __name__ if __name__ != "__main__" else "zonal.spark.daemon"
_SHARED = ("pyarrow.compute", "pyarrow.parquet", "pyspark.worker", "zonal.worker.tasks")


def is_importable() -> bool:
    """Tell whether a Python that is started like this one finds zonal: by its installed packages or `PYTHONPATH`.

    A program may have put it on its own path only.
    """
    home = str(Path(__file__).resolve().parents[2])
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home in {os.path.realpath(path) for path in (*packages, *given) if path}:
        return True
    lists = [path for folder in packages for path in sorted(Path(folder).glob("*.pth"))]
    return any(home in path.read_text(errors="replace").splitlines() for path in lists)  # an editable install


def main() -> None:
    """Serve as Spark's own daemon does."""
    _leave_archives()
    for name in _SHARED:
        import_module(name)
    manager = import_module("pyspark.daemon").manager
    gc.collect()
    gc.freeze()  # a worker collects garbage after each task: not what all of them share
    manager()


def _leave_archives() -> None:
    """Import pyspark from where it is installed, if that is the Spark whose archive is on the path."""
    archives = [path for path in sys.path if Path(path).match("python/lib/*.zip")]
    homes = {Path(path).parents[2].resolve() for path in archives}
    before = list(sys.path)
    sys.path[:] = [path for path in before if path not in archives]
    spark = find_spec("pyspark")
    if spark is None or find_spec("py4j") is None or {Path(str(spark.origin)).parent.resolve()} != homes:
        sys.path[:] = before


if __name__ == "__main__":
    main()
