"""Trials of layouts: what queries would read under one, predicted from a sample, and what they read today."""
