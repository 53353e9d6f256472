"""The command line: one command per module."""

try:
    from zonal.cli.app import app, main
except KeyboardInterrupt:  # libraries are being loaded, and nothing has begun
    raise SystemExit(130) from None

__all__ = ["app", "main"]
