"""The isolation and the unexpected ends of kernels."""
