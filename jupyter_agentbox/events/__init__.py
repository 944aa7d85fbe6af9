"""Announcements to pages, over Jupyter's event system."""
