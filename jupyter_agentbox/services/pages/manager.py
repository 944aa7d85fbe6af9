"""The policy of pages, and what pages are told about sandboxed kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from jupyter_agentbox.core.content_security import check_sources, content_security_policy
from jupyter_agentbox.core.isolation import Isolation

#: When pages get the policy: if the server can start or runs sandboxed kernels, always, or never.
PolicyMode = Literal["auto", "always", "never"]

#: Changes a page's configuration, given its handler: jupyterlab_server's `page_config_hook`.
PageConfigHook = Callable[[Any, dict[str, Any]], dict[str, Any]]

_HOOK: Final = "page_config_hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteKernels:
    """An administrator's settings for kernels behind a gateway or on other machines.

    Parameters
    ----------
    label : str
        Description of them for people who decide about their calls.
    are_trusted : bool
        Whether pages treat their outputs like those of a plain kernel.
    """

    label: str = ""
    are_trusted: bool = False


class PageManager:
    """Determines the policy and configuration of pages.

    Parameters
    ----------
    has_sandboxed_kernels : callable
        Returns whether the server can start sandboxed kernels, or runs one.
    mode : str
        When pages get the policy.
    sources : dict
        Directive to a site's additional sources.
    has_hub_service : callable
        Returns whether there is a Hub service at which requests may wait.
    remote : RemoteKernels, optional
        The administrator's settings for kernels that run elsewhere.

    Raises
    ------
    ValueError
        If the sources are invalid in a policy.
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
        """Whether pages guard the outputs of kernels with this level. An unknown level is looked up again."""
        if level is Isolation.REMOTE:
            return not self._remote.are_trusted
        return level not in (None, Isolation.NONE)

    def policy_for(self, host: str) -> str | None:
        """Return the Content-Security-Policy for a page requested from a host, if any."""
        if self._mode == "never" or (self._mode == "auto" and not self._has_sandboxed_kernels()):
            return None
        return content_security_policy(host, self._sources)

    def late_policy_for(self, host: str) -> str | None:
        """Return the policy for a page that may have been loaded before there were sandboxed kernels."""
        return None if self._mode == "never" else content_security_policy(host, self._sources)

    def configure(self, settings: MutableMapping[str, Any]) -> None:
        """Install a hook in the settings that tells pages about sandboxed kernels and a Hub service.

        An existing hook is kept. Does nothing if already installed and not replaced since.
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
