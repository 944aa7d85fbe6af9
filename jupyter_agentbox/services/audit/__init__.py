"""The record of all calls: search and export."""
