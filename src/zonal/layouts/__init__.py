"""Layouts: what the rows of a table are ordered by."""
