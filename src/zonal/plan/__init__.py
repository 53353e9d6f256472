"""The plan of a rewrite: files, placement of rows, commits."""
