"""Audits of a table: what its queries read, how far that is from what they could, and which commit is to blame."""
