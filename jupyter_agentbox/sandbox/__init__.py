"""Sandboxed kernels: a kernel provisioner, and what it is made of, by the side of the wall on which it runs.

`provisioner`, `kernelspecs` and `install` are what kernelspecs, configuration files and the command line name. Behind
them: `server` runs in the Jupyter server, `inside` in the sandbox, `watch` in processes beside it, and `egress` is the
process of its proxy.
"""
