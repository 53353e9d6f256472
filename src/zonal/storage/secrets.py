"""Values of storage options that stand in the environment or a file, so that no process list has them."""

import os
from collections.abc import Mapping
from pathlib import Path

from zonal.errors import TableError, quoted

_ENVIRONMENT, _FILE = "@env:", "@file:"


def revealed(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with the values that `@env:NAME` and `@file:PATH` stand for; other values stay as they are.

    >>> revealed({"aws_region": "eu-west-1"})
    {'aws_region': 'eu-west-1'}
    """
    return {name: _value(name, value) for name, value in options.items()}


def _value(name: str, text: str) -> str:
    if text.startswith(_ENVIRONMENT):
        variable = text.removeprefix(_ENVIRONMENT)
        if not (found := os.environ.get(variable)):
            raise TableError(f"The storage option {quoted(name)} is to be in {quoted(variable)}, which isn't set.")
        return found
    if text.startswith(_FILE):
        path = text.removeprefix(_FILE)
        try:
            return Path(path).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it isn't text in UTF-8"
            raise TableError(
                f"The storage option {quoted(name)} is to be in the file {quoted(path, limit=300)}: {why}."
            ) from None
    return text
