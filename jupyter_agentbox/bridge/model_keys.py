"""Keeps the keys of language models out of the environment of the server's kernels."""

from __future__ import annotations

import os
from typing import Any

from jupyter_client.multikernelmanager import MultiKernelManager

from jupyter_agentbox.core.model_keys import without_model_keys


def keep_model_keys_out(kernels: MultiKernelManager) -> None:
    """Let all kernels that this manager starts, or starts anew, be without the keys of models.

    Every kernel passes here, whatever classes of kernel managers and provisioners are configured, and before its
    kernelspec's ``env`` is filled in, so that ``${OPENAI_API_KEY}`` there gives nothing. A value that a kernelspec has
    itself is left.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's kernels. Its own environment stays as it is.
    """
    manager: Any = kernels
    pre_start_kernel = manager.pre_start_kernel
    update_env: Any = getattr(manager, "update_env", None)

    def start_without(kernel_name: str | None, kwargs: dict[str, Any]) -> Any:
        env = kwargs.get("env")
        kwargs["env"] = without_model_keys(os.environ if env is None else env)  # also that of each restart
        return pre_start_kernel(kernel_name, kwargs)

    def update_without(*, kernel_id: str, env: dict[str, str]) -> None:
        """Take what the next start adds: all of the server's environment, when a notebook is renamed."""
        update_env(kernel_id=kernel_id, env=without_model_keys(env))

    manager.pre_start_kernel = start_without
    if update_env is not None:  # jupyter_client 8.5 or later
        manager.update_env = update_without
