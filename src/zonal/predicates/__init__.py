"""Predicates: trees of comparisons by column name, and bound to a schema, ranges of its columns."""
