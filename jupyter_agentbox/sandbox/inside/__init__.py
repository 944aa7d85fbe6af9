"""What runs inside a sandbox, in the kernel's hands: closes what only the process itself can close."""
