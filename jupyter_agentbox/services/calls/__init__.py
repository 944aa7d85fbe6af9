"""Tool calls, from request to result."""
