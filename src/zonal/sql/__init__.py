"""SQL text of any dialect to predicates: the only door to sqlglot."""
