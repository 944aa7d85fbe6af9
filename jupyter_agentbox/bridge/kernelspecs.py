"""Whether a server can start or runs kernels whose outputs are guarded: sandboxed and remote ones."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.gateway.managers import GatewayKernelSpecManager

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import PROVISIONER

from .isolation import IsolationLookup


class SandboxedKernels:
    """The server's kernels whose outputs are guarded, because they are not the user's own.

    Parameters
    ----------
    specs : KernelSpecManager
        The server's kernelspecs.
    kernels : MultiKernelManager
        The server's kernels.
    with_remote : bool
        Whether kernels behind a gateway, or on another machine, are included.
    """

    def __init__(self, specs: KernelSpecManager, kernels: MultiKernelManager, *, with_remote: bool = True) -> None:
        self._others = (Isolation.NONE, None) if with_remote else (Isolation.NONE, None, Isolation.REMOTE)
        self._with_remote = with_remote
        self._specs = specs
        self._kernels = kernels
        self._levels = IsolationLookup(kernels)

    def exist(self) -> bool:
        """Whether a kernelspec uses the sandbox's provisioner, or a kernel that it started is running."""
        return self._have_specs() or any(
            self._levels.level_of(kernel_id) not in self._others for kernel_id in self._kernels.list_kernel_ids()
        )

    def _have_specs(self) -> bool:
        if isinstance(self._specs, GatewayKernelSpecManager):
            return self._with_remote
        if inspect.iscoroutinefunction(self._specs.get_all_specs):
            # It cannot be asked now. Unknown counts as yes.
            return True
        return any(_is_sandboxed(one.get("spec", {})) for one in self._specs.get_all_specs().values())


def _is_sandboxed(spec: Mapping[str, Any]) -> bool:
    metadata = spec.get("metadata")
    provisioner = metadata.get("kernel_provisioner") if isinstance(metadata, Mapping) else None
    return isinstance(provisioner, Mapping) and provisioner.get("provisioner_name") == PROVISIONER
