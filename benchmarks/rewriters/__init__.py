"""Engines that rewrite a table by the same columns, each measured in its own processes."""
