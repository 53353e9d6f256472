"""DuckDB as the judge of predicates."""

import duckdb

PLAIN_DUCKDB = "SET disabled_optimizers = 'expression_rewriter'"
"""The judge must not err: DuckDB 1.5 rewrites `date_trunc('month', t) <> DATE '…'` so that nulls match; 2.0 doesn't."""

duckdb.execute(PLAIN_DUCKDB)
