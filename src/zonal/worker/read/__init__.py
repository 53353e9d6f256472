"""Readers of the rows in data files, for Spark's Python workers."""
