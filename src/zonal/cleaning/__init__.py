"""Files that nobody needs: how old they must be, what proves it, and the quarantine that they are moved to."""
