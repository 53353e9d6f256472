"""Keep Spark from rereading zip archives of Python modules at the start of every task."""

import sys
import zipimport


def forget_archives() -> None:
    """Drop the import finders of zip archives, which saves the next task of this process a third of a second.

    Spark invalidates all import caches when a task begins, and up to Python 3.12 the finder of a zip archive then reads
    the archive's whole directory again; `pyspark.zip` has thousands of entries. Python makes a missing finder again
    when it next looks for a module that isn't imported yet.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
