"""The settings that a program gives an executor: how calls are decided and run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_agentbox import paths
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER
from jupyter_agentbox.protocol.shell import SHELL_SERVER

from .questions import AnswerQuestion

if TYPE_CHECKING:
    from jupyter_agentbox.services.calls.thread_modes import ThreadModes


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSettings:
    """How calls are decided and run.

    Parameters
    ----------
    policy : Policy
        Rules that allow or deny calls without asking.
    approval_timeout : float or None
        How long a request waits for a decision, in seconds; ``None`` for ever.
    connect_timeout : float
        How long an MCP server may take to start, in seconds.
    mcp_config_path : Path or None
        The file that names the MCP servers; ``None`` for those that `generate_mcp_sources` was given, those in
        Jupyter's configuration directory, and those that a person let programs add in JupyterLab.
    database_url : str or None
        SQLAlchemy URL of the approval store; ``None`` for JupyterLab's.
    reviewer : Reviewer
        Who decides, in the record.
    modes : ThreadModes or None
        The approval modes of agents' threads.
    on_question : callable or None
        Answers servers' questions.
    kernel_directories : tuple of Path
        The directories in which a sandboxed kernel can write.
    """

    policy: Policy
    approval_timeout: float | None
    connect_timeout: float
    mcp_config_path: Path | None
    database_url: str | None
    reviewer: Reviewer
    modes: ThreadModes | None = None
    on_question: AnswerQuestion | None = None
    kernel_directories: tuple[Path, ...] = ()

    def can_kernel_write(self, directory: Path) -> bool:
        """Whether a sandboxed kernel can write to a directory, given without links."""
        return any(place in (directory, *directory.parents) for place in self.kernel_directories)

    @property
    def servers_file(self) -> Path:
        """The file in which a person lists MCP servers."""
        return self.mcp_config_path or paths.config_dir() / "mcp.json"

    def config_paths(self) -> tuple[Path, ...]:
        """Return the files that may name MCP servers."""
        if self.mcp_config_path is not None:
            return (self.mcp_config_path,)
        return (paths.registered_servers_path(), self.servers_file, paths.added_servers_path())


def allowing_tools(policy: Policy) -> Policy:
    """Return a policy that allows tool calls unless one of its rules says otherwise; shell commands and code ask."""
    allowed = Rule(server="*", tool="*", effect=Effect.ALLOW, layer=Layer.SESSION, reason="approve_tool_calls is off")
    others = [
        Rule(server=one, tool="*", effect=Effect.ASK, layer=Layer.SESSION) for one in (SHELL_SERVER, NOTEBOOK_SERVER)
    ]
    return policy.with_rules([allowed, *others])
