"""The command line."""

from zonal.cli.app import app, main

__all__ = ["app", "main"]
