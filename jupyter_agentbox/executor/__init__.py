"""Runs code with the same approvals as JupyterLab has, and no browser."""
