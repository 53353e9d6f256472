"""Messages between workers, and from workers to the driver."""
