"""What errors of catalogs say, fit to be shown."""

import re

from zonal.errors import quoted


def what_of(error: Exception) -> str:
    """Tell what a client's error says, without the user and password of any URL in it."""
    return quoted(re.sub(r"://[^/\s@]*@", "://…@", f"{type(error).__name__}: {error}"), limit=300)
