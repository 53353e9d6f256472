"""Messages from worker to worker and from workers to the driver."""
