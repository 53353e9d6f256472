"""The name of a run: one for each rewrite."""

import secrets
from datetime import datetime, timezone


def new_run() -> str:
    """Name a run: when it began, and something that no other run has.

    The name is part of a folder's, and must not begin with `_` or `.`: tools that look for orphans pass over those.
    """
    return f"{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
