"""The record of all calls: found, and exported."""
