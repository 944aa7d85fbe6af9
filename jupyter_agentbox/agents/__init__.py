"""Has code made for a task: generate, analyse, ask, run, and again with what went wrong."""
