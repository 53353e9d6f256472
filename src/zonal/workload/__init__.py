"""Workloads: what query logs say that a table is asked."""
