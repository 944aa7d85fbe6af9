"""What runs in the server, or in the process of a `CodeExecutor`: decides what a sandbox is, starts and ends it."""
