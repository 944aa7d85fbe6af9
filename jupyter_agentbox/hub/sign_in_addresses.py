"""The addresses of the pages on which users sign in to central servers."""

from __future__ import annotations

from typing import Final

from jupyter_agentbox.mcp_client.provider_addresses import is_safe_address

#: The page on which users sign in, and that to which providers send them back, below the service's address.
SIGN_IN_PAGE: Final = "servers"
CALLBACK: Final = "sign-in/callback/"


def why_no_redirect(public_url: str) -> str:
    """Return why providers cannot send people back to the service; empty if they can."""
    if "://" not in public_url:
        return "`HubService.public_url` is not set to the address that people open"
    return "" if is_safe_address(public_url) else "the address that people open does not begin with https"
