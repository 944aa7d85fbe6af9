"""The server's side of the kernel link: what kernels ask for and what they are told."""
