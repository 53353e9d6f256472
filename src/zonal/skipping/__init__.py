"""Data skipping: which files, row groups or pages a predicate needs, decided on their bounds."""
