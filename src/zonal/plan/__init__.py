"""Plans of rewrites: which files, where their rows go, and in which commits."""
