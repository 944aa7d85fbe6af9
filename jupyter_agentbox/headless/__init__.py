"""Run code without a browser, in local or remote kernels, with the same approvals as in JupyterLab."""
