"""The fault simulator: verbs that write, among other writers, faults, outages and crashes at every call."""
