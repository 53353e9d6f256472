"""Delta Lake tables: their log, statistics, reads and commits."""
