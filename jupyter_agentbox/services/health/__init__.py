"""Health: whether calls can run here."""
