"""What pages are told of sandboxed kernels, and what pages may load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from jupyter_agentbox.core.content_security import check_sources, content_security_policy
from jupyter_agentbox.core.isolation import Isolation

#: Whether pages get the policy: if the server can start sandboxed kernels or runs one, always, or never.
PolicyMode = Literal["auto", "always", "never"]

#: Changes what a page is configured with, given the handler that makes it: jupyterlab_server's `page_config_hook`.
PageConfigHook = Callable[[Any, dict[str, Any]], dict[str, Any]]

_HOOK: Final = "page_config_hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteKernels:
    """What an administrator says of kernels behind a gateway, and on other machines.

    Parameters
    ----------
    label : str
        What they are, for people who decide about their calls.
    are_trusted : bool
        Whether their outputs may do in a page what those of a plain kernel may.
    """

    label: str = ""
    are_trusted: bool = False


class PageManager:
    """Decides about pages.

    Parameters
    ----------
    has_sandboxed_kernels : callable
        Says whether the server can start sandboxed kernels, or runs one.
    mode : str
        Whether pages get the policy.
    sources : dict
        Directive to further sources, for sites that need some.
    has_hub_service : callable
        Says whether there is a Hub service at which requests may wait.
    remote : RemoteKernels, optional
        What the administrator says of kernels that run elsewhere.

    Raises
    ------
    ValueError
        If the sources cannot be in a policy.
    """

    def __init__(
        self,
        *,
        has_sandboxed_kernels: Callable[[], bool],
        mode: PolicyMode,
        sources: Mapping[str, Sequence[str]],
        has_hub_service: Callable[[], bool] = lambda: False,
        remote: RemoteKernels | None = None,
    ) -> None:
        self._remote = remote or RemoteKernels()
        check_sources(sources)
        self._has_hub_service = has_hub_service
        self._has_sandboxed_kernels = has_sandboxed_kernels
        self._mode = mode
        self._sources = sources
        self._hook: PageConfigHook | None = None

    def guards(self, level: Isolation | None) -> bool:
        """Whether pages guard what kernels of this level show. One that is not known is asked for again."""
        if level is Isolation.REMOTE:
            return not self._remote.are_trusted
        return level not in (None, Isolation.NONE)

    def policy_for(self, host: str) -> str | None:
        """Return the Content-Security-Policy of a page that was asked of a host; ``None`` for none."""
        if self._mode == "never" or (self._mode == "auto" and not self._has_sandboxed_kernels()):
            return None
        return content_security_policy(host, self._sources)

    def late_policy_for(self, host: str) -> str | None:
        """Return the policy for a page that may have been loaded before there were sandboxed kernels."""
        return None if self._mode == "never" else content_security_policy(host, self._sources)

    def configure(self, settings: MutableMapping[str, Any]) -> None:
        """Let pages be told whether there are sandboxed kernels, and a Hub service, by a hook in the settings.

        A hook that is there already is kept. Does nothing if this was done and no other hook came since.
        """
        earlier: PageConfigHook | None = settings.get(_HOOK)
        if earlier is not None and earlier is self._hook:
            return

        def configure(handler: Any, config: dict[str, Any]) -> dict[str, Any]:
            if earlier is not None:
                config = earlier(handler, config)
            return {
                **config,
                "agentboxSandboxedKernels": self._has_sandboxed_kernels(),
                "agentboxHubService": self._has_hub_service(),
                "agentboxRemoteKernels": self._remote.label,
                "agentboxTrustsRemoteOutputs": self._remote.are_trusted,
            }

        settings[_HOOK] = self._hook = configure
