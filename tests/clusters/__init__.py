"""The contract of `cluster`, `clustered` and `read` on clusters whose executors are processes of their own."""
