"""What runs as the egress proxy: a process of its own that lets a sandbox reach the domains that it may."""
