"""What runs inside a sandbox, in the kernel's own process: closes what only the process itself can close."""
