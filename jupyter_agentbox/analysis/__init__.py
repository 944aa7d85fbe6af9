"""Analyzes code before it runs, and explains it to the person who decides. It confines nothing: the sandbox does."""
