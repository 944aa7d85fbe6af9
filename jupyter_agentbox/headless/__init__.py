"""Runs code without a browser: kernels of our own or on a server, and the same approvals as JupyterLab has."""
