"""Processes that end with their owner, and what of our environment they get. Every adapter may use them."""
