"""Keeps credentials out of the environment of the server's kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from jupyter_client.multikernelmanager import MultiKernelManager


def keep_credentials_out(kernels: MultiKernelManager, without: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    """Remove credentials from the environment of all kernels that this manager starts or restarts.

    Every kernel passes through here, whatever classes of kernel managers and provisioners are configured, before its
    kernelspec's ``env`` is expanded, so that ``${OPENAI_API_KEY}`` there expands to nothing. Literal values in a
    kernelspec are kept.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's kernels. Its own environment is unchanged.
    without : callable
        Returns an environment without credentials.
    """
    manager: Any = kernels
    pre_start_kernel = manager.pre_start_kernel
    update_env: Any = getattr(manager, "update_env", None)

    def start_without(kernel_name: str | None, kwargs: dict[str, Any]) -> Any:
        env = kwargs.get("env")
        kwargs["env"] = without(os.environ if env is None else env)  # also for each restart
        return pre_start_kernel(kernel_name, kwargs)

    def update_without(*, kernel_id: str, env: dict[str, str]) -> None:
        """Handle additions for the next start: all of the server's environment, when a notebook is renamed."""
        update_env(kernel_id=kernel_id, env=without(env))

    manager.pre_start_kernel = start_without
    if update_env is not None:  # jupyter_client 8.5 or later
        manager.update_env = update_without
