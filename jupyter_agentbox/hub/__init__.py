"""The Hub service, run beside a JupyterHub: central MCP servers, approval by second persons, and the record of both."""
