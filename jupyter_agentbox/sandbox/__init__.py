"""Kernels that cannot get around the approval: a kernel provisioner and what it is made of."""
