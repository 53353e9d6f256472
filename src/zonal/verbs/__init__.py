"""The verbs: functions from a table to a result, the same in Python and on the command line."""
