"""Places outside this server that take the records of its audit."""
