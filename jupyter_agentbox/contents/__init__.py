"""Prevents Jupyter's file handling from following links that a sandboxed kernel may have created."""
