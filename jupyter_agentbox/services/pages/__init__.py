"""The pages of the server."""
