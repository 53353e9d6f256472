"""Rewrites and real queries of zonal and its peers, compared on the same rows with about the same number of files."""
