"""Samples that the driver reads from a table before it decides."""
