"""What MCP servers ask people while their tools run."""
