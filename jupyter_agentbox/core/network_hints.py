"""What a sandboxed kernel says about its network when an error shows that the sandbox has stopped a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: The environment variable with the domains that a sandboxed kernel may reach, separated by commas; may be empty.
SANDBOX_DOMAINS: Final = "AGENTBOX_SANDBOX_DOMAINS"

#: Maximum number of domains that are named.
_NAMED: Final = 8
_NOTHING: Final = "This kernel is sandboxed and has no network, so the connection was blocked."
_SOME: Final = "This kernel is sandboxed: it reaches only {domains}, through the proxy that `HTTPS_PROXY` names."
_SETTING: Final = (
    "The setting `allowed_domains`, in the kernelspec or as `SandboxProvisioner.allowed_domains`, says what kernels may"
    " reach; it holds for kernels that are started afterwards."
)


def network_hint(domains: Sequence[str]) -> str:
    """Return what has blocked a connection, and which setting would allow it.

    Parameters
    ----------
    domains : sequence of str
        The domains that the kernel may reach.
    """
    if not domains:
        return f"{_NOTHING} {_SETTING}"
    more = len(domains) - _NAMED
    named = ", ".join(domains[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{_SOME.format(domains=named)} {_SETTING}"
