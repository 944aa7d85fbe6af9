"""The Hub service: central MCP servers, approvals by second persons, and the record of both, beside a JupyterHub."""
