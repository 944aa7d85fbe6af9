"""Registrations: requests of programs to add MCP servers."""
