"""Rows of data files, read in Spark's Python workers."""
