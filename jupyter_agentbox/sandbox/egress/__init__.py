"""The egress proxy: a separate process through which a sandbox reaches the domains that it is allowed to reach."""
