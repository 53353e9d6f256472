"""Appends for tests: in this process, to tables that the formats' own libraries make and read."""

from zonal.verbs.append import append


def append_to(table, rows, **asked):
    """Append to a home of `cluster_tables`."""
    return append(table.name, rows, **table.options, **asked)
