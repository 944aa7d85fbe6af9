"""Threads of an agent: the loop in which a model is asked, its code is approved and runs, and the model is told."""
