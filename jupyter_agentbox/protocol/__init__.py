"""Messages between the kernel side and the server side, shared by both."""
