"""Read SQL text of any dialect as predicates; the only package that imports sqlglot."""
