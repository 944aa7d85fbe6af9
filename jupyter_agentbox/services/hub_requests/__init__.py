"""Requests at the Hub service that wait for this server's user."""
