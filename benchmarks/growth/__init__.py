"""Real tables that receive the same parts, and the engines that keep them clustered."""
