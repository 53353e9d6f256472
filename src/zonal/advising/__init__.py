"""Advice on a table: candidate layouts, what queries would read with each, what each costs, and cautions."""
