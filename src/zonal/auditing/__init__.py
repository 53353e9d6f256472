"""What queries read of a table, what it owes to its order, and which commit spoiled that."""
