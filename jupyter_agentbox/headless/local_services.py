"""The services of one executor: the parts of `composition`, and the link to its kernel.

This module takes longer to import than a kernel to start, and most cells call no tool: `LocalBackend` imports it when
something needs it, in a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from jupyter_agentbox import composition, paths
from jupyter_agentbox.core.approvals import Answer
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import TurnRef
from jupyter_agentbox.core.ports import Announcer
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.mcp_client.limits import ServerLimits, safe_working_directory
from jupyter_agentbox.protocol.messages import Welcome
from jupyter_agentbox.protocol.shell import SHELL_SERVER
from jupyter_agentbox.sandbox.server.writable_directories import could_write
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.services.kernel_connections.manager import KernelConnectionManager
from jupyter_agentbox.storage.approvals import sqlite_url

from .backend_settings import BackendSettings
from .questions import ProgramAnswerer
from .reports import Report, log_message_of
from .shell_commands import ShellTools

log = logging.getLogger(__name__)

#: Seconds until a kernel is told that its call waits or runs. Nobody looks at a card, and most calls end before.
_STATUS_DELAY: Final = 0.3


class _NoNotebooks:
    """A `NotebookFinder` where there are no notebooks."""

    async def path_of(self, _kernel_id: str) -> str | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServices:
    """The services that decide and run calls.

    Parameters
    ----------
    box : AgentBox
        The managers.
    kernels : KernelConnectionManager
        The lines to kernels.
    """

    box: composition.AgentBox
    kernels: KernelConnectionManager

    @classmethod
    def build(
        cls,
        settings: BackendSettings,
        *,
        announcer: Announcer,
        on_report: Callable[[Report], None],
        turn_of: Callable[[str], TurnRef | None],
    ) -> Self:
        """Build and connect the parts. Opens and starts nothing.

        Parameters
        ----------
        settings : BackendSettings
            How calls are decided and run.
        announcer : Announcer
            Told of each new or changed request.
        on_report : callable
            Gets what MCP servers log.
        turn_of : callable
            Returns the turn of an agent that works in a kernel.
        """
        box = composition.build(
            _composition_settings(settings),
            announcer=announcer,
            policy=settings.policy,
            own_tools={SHELL_SERVER: ShellTools()},
            on_log=lambda server, message: on_report(log_message_of(server, message)),
            modes=settings.modes,
            answerer=ProgramAnswerer(settings.on_question, reviewer=settings.reviewer, on_report=on_report),
        )
        asker = Asker.of(settings.reviewer)
        kernels = KernelConnectionManager(
            calls=box.calls,
            approvals=box.approvals,
            policies=box.policies,
            grants=box.grants,
            catalog=box.tools,
            notebooks=_NoNotebooks(),
            turn_of=turn_of,
            generate=composition.module_json,
            welcome=Welcome,
            status_delay=_STATUS_DELAY,
            askers_of=lambda _: (asker,),
            servers_file=str(settings.servers_file.absolute()),
        )
        box.tools.follow(kernels.servers_changed)
        return cls(box=box, kernels=kernels)

    async def start(self) -> None:
        """Open the approval store. Where it cannot be opened, no call runs until it can."""
        try:
            await self.box.start()
        except StorageError:
            log.exception("the approval store cannot be opened: no call runs until it can")

    async def decide(
        self, request: StoredRequest, answer: Answer, reason: str, arguments: Mapping[str, Any] | None, by: Any
    ) -> None:
        """Decide a request; on return, the decision is stored."""
        verdict = Verdict(
            answer=answer,
            digest=request.call.digest,
            reason=reason,
            tell=answer.allows and reason != "",
            arguments=arguments,
        )
        await self.box.decisions.decide(request.id, verdict, reviewer=by)


def _composition_settings(settings: BackendSettings) -> composition.Settings:
    def is_writable(directory: Path) -> bool:
        return settings.can_kernel_write(directory) or could_write(directory)

    return composition.Settings(
        mcp_config_path=settings.config_paths(),
        database_url=settings.database_url or sqlite_url(str(paths.data_dir() / "approvals.sqlite")),
        added_servers=None if settings.mcp_config_path is not None else paths.registered_servers_path(),
        approval_timeout=settings.approval_timeout,
        sign_ins=paths.sign_ins_path(),
        limits=ServerLimits(
            start_timeout=settings.connect_timeout, default_cwd=partial(safe_working_directory, is_writable)
        ),
    )
