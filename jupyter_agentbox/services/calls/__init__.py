"""Tool calls, from the question to the result."""
