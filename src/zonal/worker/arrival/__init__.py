"""Rows on their way into a table: checked against its schema, divided into partitions, and staged in files."""
