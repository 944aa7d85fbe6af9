"""Agents: who writes code for a task, with a model or without, that runs after a person or a rule said yes."""
