"""Whether calls can run here."""
