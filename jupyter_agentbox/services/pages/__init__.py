"""Pages: their content security policy and their configuration."""
