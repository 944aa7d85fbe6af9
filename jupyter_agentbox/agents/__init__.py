"""Agents: generators of code, with or without a model, that runs once a person or a rule has approved it."""
