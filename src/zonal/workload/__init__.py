"""Workloads: the weighted queries of a table, read from query logs."""
