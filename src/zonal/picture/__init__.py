"""Pictures of tables: files as rectangles over columns, small enough for a page."""
