"""Runs a ``%%agent`` cell: starts a turn on the server, shows its events, and runs its code."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.exceptions import AgentTurnError
from jupyter_agentbox.protocol.messages import CodeRan, GetVariables, RunCode, StartTurn, TurnEvent, TurnNews

from .agent_code import AgentCode
from .agent_view import TurnView
from .interrupts import Interrupts
from .link import Link
from .variables import describe_variables


async def run_turn(shell: Any, link: Link, prompt: str, options: JsonObject) -> None:
    """Run a turn to its end, within its cell.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    link : Link
        The link to the server.
    prompt : str
        The question or task for the agent.
    options : dict
        The options, as in `StartTurn`.

    Raises
    ------
    AgentTurnError
        The turn failed.
    KeyboardInterrupt
        It was interrupted, here or elsewhere.
    AgentBoxError
        It did not start.
    """
    question = StartTurn(id=uuid4().hex, prompt=prompt, options=options, cell_id=link.cells.current().cell_id)
    interrupts = Interrupts(AgentCode.blocking())
    turn = _Turn(shell, link, question, interrupts)
    try:
        with interrupts:
            reply = await link.run_turn(question, turn.act)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise _interrupt() from None
    finally:
        turn.view.close()
    _raise_unless_completed(reply.content.get("turn"))


class _Turn:
    """Carries out the server's requests for a turn."""

    def __init__(self, shell: Any, link: Link, question: StartTurn, interrupts: Interrupts) -> None:
        self._shell = shell
        self._link = link
        self._question = question
        self._code = AgentCode(shell, link.cells, interrupts)
        url = link.welcome.url if link.welcome is not None else ""
        self.view = TurnView(link.transport, link.cells.current(), prompt=question.prompt, url=url)

    async def act(self, news: TurnNews) -> None:
        match news:
            case TurnEvent(event=event):
                self.view.show(event)
            case RunCode(run_id=run_id, code=code):
                self.view.code_starts()
                self._tell(run_id, await self._code.run(code))
            case GetVariables(run_id=run_id):
                lines = describe_variables(self._shell.user_ns, self._shell.user_ns_hidden)
                self._tell(run_id, {"text": "\n".join(lines) or "(no variables)"})

    def _tell(self, run_id: str, content: JsonObject) -> None:
        self._link.tell(CodeRan(id=self._question.id, run_id=run_id, content=content))


def _raise_unless_completed(turn: Any) -> None:
    told: dict[str, Any] = turn if isinstance(turn, dict) else {}
    if told.get("status") == "interrupted":
        raise _interrupt()
    if told.get("status") == "failed":
        error = told.get("error") or {}
        raise AgentTurnError(str(error.get("message") or "the turn failed"), reason=str(error.get("code") or ""))


def _interrupt() -> KeyboardInterrupt:
    """Return the exception of an interrupted cell, without a traceback of this package's code."""
    interrupt = KeyboardInterrupt("the agent's turn was interrupted")
    interrupt.__dict__["_render_traceback_"] = lambda: ["KeyboardInterrupt: the agent's turn was interrupted"]
    return interrupt
