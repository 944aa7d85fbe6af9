"""The policy in force: the layers' rules and what people said for good."""
