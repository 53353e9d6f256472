"""Readers of Parquet's own metadata: footers, page indexes and Bloom filters."""
