"""Rewrites of a table's files, from a checked request to a proved commit."""
