"""The server's end of the kernel link: kernels' requests and the answers to them."""
