"""Approvals for tool calls made by code in Jupyter.

``from jupyter_agentbox import tools`` gives the MCP servers of this Jupyter server as Python modules. Everything is
loaded on first use: importing this package imports nothing but itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"

#: Public name -> the module that defines it. Resolved on first access (PEP 562).
_LAZY = {
    "Agent": "jupyter_agentbox.headless.sync_agent",
    "AgentBoxError": "jupyter_agentbox.exceptions",
    "AgentConfigurationError": "jupyter_agentbox.exceptions",
    "AgentTurnError": "jupyter_agentbox.exceptions",
    "AnalysisSettings": "jupyter_agentbox.analysis.findings",
    "ApprovalCancelledError": "jupyter_agentbox.exceptions",
    "ApprovalExpiredError": "jupyter_agentbox.exceptions",
    "ApprovalMode": "jupyter_agentbox.core.threads",
    "ApprovalRequest": "jupyter_agentbox.headless.requests",
    "AsyncAgent": "jupyter_agentbox.headless.agent",
    "AttemptError": "jupyter_agentbox.agents.results",
    "CodeExecutionChunk": "jupyter_agentbox.headless.results",
    "CodeExecutionError": "jupyter_agentbox.headless.results",
    "CodeExecutionResult": "jupyter_agentbox.headless.results",
    "CodeExecutor": "jupyter_agentbox.headless.executor",
    "CodeGenerationError": "jupyter_agentbox.exceptions",
    "CodeGenerator": "jupyter_agentbox.agents.generators",
    "CodeGeneratorConfigurationError": "jupyter_agentbox.exceptions",
    "CodeRequest": "jupyter_agentbox.agents.requests",
    "CodeResult": "jupyter_agentbox.agents.results",
    "CodeRun": "jupyter_agentbox.headless.code_service",
    "CodeService": "jupyter_agentbox.headless.code_service",
    "CodeStatus": "jupyter_agentbox.agents.results",
    "DomainCalls": "jupyter_agentbox.analysis.findings",
    "ExecutionError": "jupyter_agentbox.headless.results",
    "ExecutionResult": "jupyter_agentbox.headless.results",
    "Finding": "jupyter_agentbox.analysis.findings",
    "KernelClient": "jupyter_agentbox.headless.client",
    "KernelGateway": "jupyter_agentbox.headless.gateway",
    "MockCodeGenerator": "jupyter_agentbox.agents.mock_generator",
    "NoServerError": "jupyter_agentbox.exceptions",
    "NobodyToAskError": "jupyter_agentbox.exceptions",
    "SandboxConfigError": "jupyter_agentbox.exceptions",
    "SandboxRefusedError": "jupyter_agentbox.exceptions",
    "ServerLogMessage": "jupyter_agentbox.headless.reports",
    "ServerQuestion": "jupyter_agentbox.headless.questions",
    "ThreadBusyError": "jupyter_agentbox.exceptions",
    "ToolArgumentsError": "jupyter_agentbox.exceptions",
    "ToolCallRejectedError": "jupyter_agentbox.exceptions",
    "ToolCatalog": "jupyter_agentbox.core.ports",
    "ToolError": "jupyter_agentbox.exceptions",
    "ToolProgress": "jupyter_agentbox.headless.reports",
    "ToolServerError": "jupyter_agentbox.exceptions",
    "UnknownThreadError": "jupyter_agentbox.exceptions",
    "create_code_generator": "jupyter_agentbox.agents.generators",
    "generate_mcp_sources": "jupyter_agentbox.headless.mcp_sources",
}

__all__ = ["__version__", "tools", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name == "tools":
        return import_module("jupyter_agentbox.tools")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "tools", *_LAZY])


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Load the kernel side: the link to the server and the ``%agentbox`` magic."""
    from jupyter_agentbox.kernel.extension import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the ``%agentbox`` magic."""
    from jupyter_agentbox.kernel.extension import unload

    unload(shell)


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from jupyter_agentbox.app.extension import AgentBoxApp

    return [{"module": "jupyter_agentbox", "app": AgentBoxApp}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-agentbox"}]
