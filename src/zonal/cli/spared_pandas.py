"""Spare a command the import of pandas, which pyarrow would do for its first array and no command uses."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Unseen(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def spare_pandas() -> None:
    """Let pyarrow look for pandas once and find none; where it is loaded already, nothing changes.

    Others can import it afterwards, as pyspark does, and what pyarrow can't do without it, as `to_pandas`, looks again.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 - `zonal --help` stays fast

    unseen = _Unseen()
    sys.meta_path.insert(0, unseen)
    try:
        pa.scalar(0)  # without a type, so that its inference of types looks for pandas, too
    finally:
        sys.meta_path.remove(unseen)
