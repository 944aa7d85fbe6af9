"""What arranges: a manager awaits, a handler speaks HTTP."""
