"""The threads of agents: what they do in notebooks, and what pages are told of it."""
