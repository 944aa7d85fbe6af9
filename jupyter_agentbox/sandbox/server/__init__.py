"""What runs in the server, or in the process of a `CodeExecutor`: plans a sandbox, starts it and ends it."""
