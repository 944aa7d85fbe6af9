"""The side of the link that runs in the user's kernel: stdlib, comm, IPython, ipywidgets, and nothing of the server."""
