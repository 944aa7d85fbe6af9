"""Agents' threads: the loop that asks a model, has its code approved and run, and returns the results to it."""
