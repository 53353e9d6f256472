"""What the driver looks at in a table before it decides."""
