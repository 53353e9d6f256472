"""What audits and rewrites of tables found over time, in a database of the user's choice."""
