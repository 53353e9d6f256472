"""What Spark does with zip archives when a task begins, and how to spare its time."""

import sys
import zipimport


def forget_archives() -> None:
    """Spare the next task of this process a third of a second.

    Spark invalidates all import caches when a task begins, and up to Python 3.12 the finder of a zip archive then reads
    the archive's whole directory again; `pyspark.zip` has thousands of entries. A finder that is missing from the cache
    is made again when a module is looked for that isn't imported yet.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
