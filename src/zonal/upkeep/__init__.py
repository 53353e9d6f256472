"""What keeps a growing table clustered: its runs, what merging them would save, and which merges to make."""
