"""Jupyter's own file handling, held to follow no link that a sandboxed kernel may have made."""
