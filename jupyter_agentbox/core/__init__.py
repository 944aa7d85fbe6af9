"""What decides: values and tables only. No file, socket, loop, clock or random; time and ids come in as arguments."""
