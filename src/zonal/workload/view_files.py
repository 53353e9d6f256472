"""Files of views: each holds the SELECT of a view that queries read."""

from pathlib import Path

from zonal.errors import quoted
from zonal.workload.query import LogError

MOST_BYTES = 2_000_000


def read_view(path: Path, what: str) -> str:
    """Return the query of a view; `what` names the view in errors."""
    shown = quoted(str(path), limit=300)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise LogError(f"{what} can't be read from {shown}: {reason}.") from None
    if len(data) > MOST_BYTES:
        raise LogError(f"{what} has more than {MOST_BYTES:,} bytes in {shown}: give its SELECT alone.")
    return text
