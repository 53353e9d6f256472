"""Parquet files, written in Spark's Python workers."""
