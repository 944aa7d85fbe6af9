"""Subprocesses that end with their owner, and their environment. All adapters may use this package."""
