"""Agents' threads in notebooks, and their announcement to pages."""
