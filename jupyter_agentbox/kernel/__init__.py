"""The kernel's end of the link: imports stdlib, comm, IPython and ipywidgets, and nothing of the server."""
