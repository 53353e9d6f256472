"""Predicates: from SQL text to a tree of comparisons, and bound to a schema, to ranges of columns."""
