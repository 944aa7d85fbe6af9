"""Chooses a kernel's process: a plain one, or one in a sandbox."""

from __future__ import annotations

from jupyter_agentbox.core.sandbox_settings import SandboxSettings

from .backend_settings import BackendSettings
from .local_process import LocalProcess
from .ports import KernelProcess, OnOutput


def new_process(on_output: OnOutput, *, sandbox: SandboxSettings | None, backend: BackendSettings) -> KernelProcess:
    """Return a kernel's process, which is not started yet.

    Parameters
    ----------
    on_output : callable
        Gets what it writes to its standard output and error.
    sandbox : SandboxSettings or None
        Its sandbox; ``None`` for none.
    backend : BackendSettings
        Name the files that a sandbox hides: those of the MCP servers and of the database.
    """
    if sandbox is None:
        return LocalProcess(on_output)
    # most kernels have none
    from jupyter_agentbox.sandbox.server.configuration_files import files_of_database  # noqa: PLC0415
    from jupyter_agentbox.sandbox.server.process import SandboxedProcess  # noqa: PLC0415

    named = [] if backend.mcp_config_path is None else [backend.mcp_config_path.expanduser().absolute()]
    hidden = (*named, *files_of_database(backend.database_url or ""))
    return SandboxedProcess(on_output, settings=sandbox, hidden=hidden)
