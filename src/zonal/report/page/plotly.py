"""Find plotly.js in plotly's package: the only script on pages that isn't zonal's."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from zonal.errors import ZonalError


@lru_cache(maxsize=1)
def plotly_script() -> str:
    """Return plotly.js, without importing the package's Python code."""
    spec = find_spec("plotly")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise ZonalError("Pages with charts need plotly, which isn't installed here: pip install 'plotly>=7'.")
