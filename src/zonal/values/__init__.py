"""Values of columns: their names, types, sizes and order."""
