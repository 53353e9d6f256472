"""Real servers of stores and catalogs, which need npm, Go or Maven: `make stores`."""
