"""Files as rectangles over columns, small enough for a page."""
