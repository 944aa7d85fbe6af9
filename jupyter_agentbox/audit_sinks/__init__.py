"""Audit sinks: receivers of audit records outside this server."""
