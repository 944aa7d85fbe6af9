"""Drives kernels without a browser: processes, sockets, outputs."""
