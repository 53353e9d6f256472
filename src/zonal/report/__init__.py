"""Results for people and for programs: they draw values, and compute nothing."""
