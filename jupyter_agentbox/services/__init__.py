"""Services: managers await, handlers speak HTTP."""
