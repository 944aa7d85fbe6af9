"""The server's end of the line to a kernel."""
