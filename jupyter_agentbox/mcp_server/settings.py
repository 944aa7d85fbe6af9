"""The MCP server's settings, from the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.headless.sandbox_config import SandboxConfig

#: Clients give a tool a minute, as a rule: they get an answer before.
BUSY_TIMEOUT: Final = 45.0


class Approver(str, Enum):
    """Who is asked about calls that no rule decides."""

    #: The client if it can ask, else a running JupyterLab, else nobody.
    AUTO = "auto"
    #: The MCP client's user, by elicitation.
    CLIENT = "client"
    #: The user of a running JupyterLab, whose kernel runs the code then.
    JUPYTERLAB = "jupyterlab"
    #: Nobody: what no rule allows is refused.
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeServerSettings:
    """How code runs, and who is asked.

    Parameters
    ----------
    approver : Approver
        Who is asked.
    server_url : str or None
        The Jupyter server to use; ``None`` for one that runs on this machine.
    token : str or None
        Its token; ``None`` to read it from the server's file in the runtime directory.
    policy : Policy or None
        The rules of ``--rules``.
    timeout : float or None
        Seconds that a cell may run if its request does not say.
    busy_timeout : float
        Seconds that a cell waits for an earlier one, if the client did not send them together.
    working_dir, images_dir, mcp_config : Path or None
        As for `CodeExecutor`.
    approve_shell_cmds : bool
        Whether shell commands need approval.
    approval_timeout : float or None
        Seconds that a request waits for its decision.
    sandbox : bool
        Whether the kernel runs in a sandbox; if it cannot, it does not run at all.
    sandbox_config : mapping, Path, str or None
        The sandbox's settings.
    log_level : str
        The level of the log, which goes to standard error.
    """

    approver: Approver = Approver.AUTO
    server_url: str | None = None
    token: str | None = field(default=None, repr=False)
    policy: Policy | None = None
    timeout: float | None = None
    busy_timeout: float = BUSY_TIMEOUT
    working_dir: Path | None = None
    images_dir: Path | None = None
    mcp_config: Path | None = None
    approve_shell_cmds: bool = False
    approval_timeout: float | None = None
    sandbox: bool = False
    sandbox_config: SandboxConfig | None = None
    log_level: str = "WARNING"

    def only_local(self) -> list[str]:
        """Return the given options that have no meaning for a kernel of a Jupyter server."""
        given = {
            "--rules": self.policy is not None,
            "--mcp-config": self.mcp_config is not None,
            "--approve-shell-cmds": self.approve_shell_cmds,
            "--sandbox": self.sandbox,
            "--sandbox-config": self.sandbox_config is not None,
            "--approval-timeout": self.approval_timeout is not None,
        }
        return [option for option, is_given in given.items() if is_given]
