"""Pythons of executors: with some packages of this one, and no others."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("numpy", "pyarrow")
"""What executors need."""


def python_with(folder: Path, packages: tuple[str, ...] = NEEDED) -> Path:
    """Make an environment with links to these packages of this Python, and return its program."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (inside,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        site = Path(spec.origin).parents[1]
        for part in (site / package, site / f"{package}.libs", *site.glob(f"{package}-*.dist-info")):
            if part.exists():
                (inside / part.name).symlink_to(part)
    return folder / "bin" / "python"
