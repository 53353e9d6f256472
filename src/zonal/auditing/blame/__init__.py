"""Which commit spoiled a table's order."""
