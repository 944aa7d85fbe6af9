"""The server's end of the link to a kernel."""
