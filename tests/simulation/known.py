"""Categories of violations that the tests pass over: those that are acceptable, and those that wait for a fix."""

ACCEPTED = {
    # Every Delta writer has this window: the number of a version is all that it can ask for.
    "recreated-window": "a Delta table was dropped and made anew between the last look at its log and the link",
}
KNOWN: dict[str, str] = {}
"""Those that wait for a fix: the default schedules pass over them, `make simulate` reports them."""


def counts(violation: str) -> bool:
    """Tell whether a violation fails a test."""
    category = violation.partition(":")[0]
    return category not in ACCEPTED and category not in KNOWN
