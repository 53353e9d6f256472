"""Folders of plain Parquet files as tables."""
