"""The policy in force: rules of all layers, and grants."""
