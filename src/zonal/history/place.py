"""Where the history is that nobody named: known without the library that opens it, which takes long to load."""

import os
from pathlib import Path

from zonal.errors import option
from zonal.history.records import HistoryError


def default_file() -> Path:
    """Return the file of SQLite in the user's state folder."""
    return _state_folder() / "zonal" / "history.db"


def is_begun() -> bool:
    """Tell whether there may be a history although none is named: $ZONAL_DATABASE, or the file by default."""
    if os.environ.get("ZONAL_DATABASE"):
        return True
    try:
        return default_file().exists()
    except OSError:  # who opens it says what is wrong
        return True


def _state_folder() -> Path:
    """Return the user's state folder (XDG Base Directory Specification; a relative $XDG_STATE_HOME is ignored)."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    if named.is_absolute():
        return named
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:
        raise HistoryError(f"This user has no home: name a database ({option('database')}, $ZONAL_DATABASE).") from None
