"""Categories of violations that the tests pass over: those that are acceptable, and those that wait for a fix."""

ACCEPTED = {
    # Every Delta writer has this window: the number of a version is all that it can ask for.
    "recreated-window": "a Delta table was dropped and made anew between the last look at its log and the link",
}
KNOWN: dict[str, str] = {
    # Wait for a fix: the default schedules pass over them, `make simulate` reports them.
    "harmed-committed": "new files that are gone or torn are committed",
    "harmed-copied": "new files that are gone or torn become a copy",
    "removed-live": "Iceberg: a commit is done and reported as failed, and the table's files are removed",
    "copy-swept": "--into iceberg: the copy is made, the answer lost, and its files are removed",
    "untrue-other-writer": "--into iceberg: the run's own table is taken for another writer's",
    "groundless-unknown": "--into iceberg: manifests can't be written, and the catalog is said to be silent",
    "copy-again": "--into delta: what a failed copy leaves keeps a second attempt from making it",
    "copy-again-after-crash": "the same after a crash",
    "copy-again-after-unknown": "the same after a commit of which nobody knows",
    "copy-again-after-outage": "the same after an outage in which nothing could be removed",
    "recreated-mixed": "Delta: a table that is dropped and made anew between two attempts gets files of the old one",
    "stale-layout": "Iceberg: a layout is recorded of a column that was renamed or dropped meanwhile",
    "untrue-nothing": "commit_every: nothing is said to be committed after some commits",
    "untrue-count": "commit_every: commits of other parts aren't counted",
    "untrue-hint": "Delta: where an entry of the log can't be written, hard links are said to be missing",
    "raw-KeyError-in-rewriting": "a key column is renamed or dropped meanwhile",
    "raw-RuntimeError-in-writer": "closing the writer hides why writing failed",
    "raw-OSError-in-writer": "an error of the storage while writing",
    "raw-OSError-in-parquetcopy": "--into parquet: an error of the storage when the folder is renamed",
}


def counts(violation: str) -> bool:
    """Tell whether a violation fails a test."""
    category = violation.partition(":")[0]
    return category not in ACCEPTED and category not in KNOWN
