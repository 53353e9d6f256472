"""What queries would read under a layout, predicted from a sample of the rows; and what they read today."""
