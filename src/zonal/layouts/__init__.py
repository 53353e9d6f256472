"""Layouts: the order of a table's rows, from column values to sort keys and file cuts."""
