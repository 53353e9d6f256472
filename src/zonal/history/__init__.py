"""The history: records of audits and rewrites over time, in a database of the user's choice."""
