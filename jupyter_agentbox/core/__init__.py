"""Pure decision logic: values and tables, no file, socket, loop, clock or random; time and ids are arguments."""
