"""Engines that rewrite a table by the same columns, each measured in processes of its own."""
