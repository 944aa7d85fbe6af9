"""Looks at code before it runs, and explains it to the person who decides. It is no wall: the sandbox is."""
