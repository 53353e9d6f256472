"""The demonstration: tables as they arrive, clustered on Spark, and what queries read before and after."""
