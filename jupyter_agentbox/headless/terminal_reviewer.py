"""`TerminalReviewer`: asks for decisions in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jupyter_agentbox.core.risks import Risk
from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.exceptions import AgentBoxError, InvalidTransitionError, StorageError

from .argument_editor import ArgumentEditor, EditError
from .requests import ApprovalRequest
from .terminal import Terminal
from .terminal_texts import described, difference, qualified_name, risk_of

_NOBODY: Final = (
    "nobody could be asked: there is no terminal, and no rule covers this call; see --rules, or let it wait in"
    " JupyterLab with --ask jupyterlab"
)

#: Each choice: its key, its word, how the question offers it, and what it does.
_CHOICES: Final = (
    ("y", "yes", "[y]es", "run this call, this once"),
    ("n", "no", "[n]o", "do not run it; the code gets an error"),
    ("e", "edit", "[e]dit", "change the arguments; what you change is shown before it runs"),
    ("u", "undo", "[u]ndo the edit", "go back to the arguments that the code asked for"),
    ("a", "all", "[a]ll in this run", "run it, and every later call of this tool in this run, whatever its arguments"),
    ("c", "comment", "[c]omment", "yes, with a comment for the code and the record"),
    ("r", "reason", "[r]eason", "no, with a reason that the code is told"),
)
_HELP: Final = "?"


class TerminalReviewer:
    """Asks for decisions in the terminal, one at a time.

    Parameters
    ----------
    terminal : Terminal or None
        Where to ask; ``None`` to refuse all requests.

    Attributes
    ----------
    refused : bool
        Whether a request was rejected or nobody could be asked.
    asked : set of str
        The ids of the requests that were decided here.
    """

    def __init__(self, terminal: Terminal | None) -> None:
        self._terminal = terminal
        self.refused = False
        self.asked: set[str] = set()

    async def decide(self, request: ApprovalRequest) -> None:
        """Ask until the answer is clear, and apply it to the request."""
        if request.stored.status.is_final:
            return  # an answer to an earlier request applied to this one, too
        self.asked.add(request.id)
        if self._terminal is None:
            self.refused = True
            await request.reject_unasked(_NOBODY)
            return
        question = _Question(self._terminal, request)
        if await question.ask() is False:
            self.refused = True


class _Question:
    """One request, until it is decided."""

    def __init__(self, terminal: Terminal, request: ApprovalRequest) -> None:
        self._terminal = terminal
        self._request = request
        self._editor = ArgumentEditor(terminal, request.tool_args)
        self._edited: Mapping[str, Any] | None = None

    async def ask(self) -> bool | None:
        """Ask until the request is decided; return whether it was allowed, and ``None`` if it no longer waits."""
        terminal = self._terminal
        terminal.begin_question(described(self._request, columns=terminal.columns))
        while True:
            terminal.show(self._prompt())
            line = await terminal.read_line()
            try:
                if not line:  # the terminal is gone
                    return await self._reject(_NOBODY)
                is_allowed = await self._take(line.strip())
            except InvalidTransitionError:
                terminal.show("This request no longer waits: it has expired, or its code was stopped.\n")
                return None
            except StorageError:
                raise
            except AgentBoxError as error:
                terminal.show(f"{visible(str(error))}\n")
                continue
            if is_allowed is not None:
                return is_allowed

    async def _take(self, typed: str) -> bool | None:
        """Do what was typed; return whether the call was allowed, and ``None`` while that is open."""
        request = self._request
        match self._choice(typed):
            case "y":
                await request.accept(self._edited)
                return True
            case "n":
                return await self._reject("")
            case "a":
                await request.accept(lasting=True)
                return True
            case "c":
                return await self._accept_with_comment()
            case "r":
                self._terminal.show("Reason: ")
                return await self._reject((await self._terminal.read_line()).strip())
            case "e":
                await self._edit()
            case "u":
                self._edited = None
                self._editor = ArgumentEditor(self._terminal, request.tool_args)
            case "?":
                self._terminal.show(self._help())
            case _ if typed:
                self._terminal.show(f"`{one_line(typed, 40)}` is not one of the choices; {_HELP} explains them.\n")
        return None

    async def _accept_with_comment(self) -> bool | None:
        self._terminal.show("Comment: ")
        comment = (await self._terminal.read_line()).strip()
        if not comment:
            self._terminal.show("There is no comment, so nothing was decided.\n")
            return None
        await self._request.accept(self._edited, comment=comment)
        return True

    async def _reject(self, reason: str) -> bool:
        await self._request.reject(reason)
        return False

    async def _edit(self) -> None:
        terminal, asked = self._terminal, self._request.tool_args
        try:
            edited = await self._editor.edit()
        except EditError as error:
            terminal.begin_question(str(error))
            return
        changed = difference(asked, edited, columns=terminal.columns)
        if not changed:
            self._edited = None
            terminal.begin_question("The arguments are those that the code asked for.")
            return
        self._edited = edited
        terminal.begin_question(f"{one_line(qualified_name(self._request))} would run with these changes:\n{changed}")

    def _offered(self) -> list[tuple[str, str, str, str]]:
        request = self._request
        is_offered = {
            "e": request.can_be_edited,
            "u": self._edited is not None,
            # What runs then need not be what was shown, so it is not for what destroys, nor for commands.
            "a": self._edited is None
            and request.can_be_granted
            and not (risk_of(request).is_own or risk_of(request).risk is Risk.DESTRUCTIVE),
        }
        return [choice for choice in _CHOICES if is_offered.get(choice[0], True)]

    def _prompt(self) -> str:
        what = one_line(qualified_name(self._request))
        choices = ", ".join(offer for _, _, offer, _ in self._offered())
        return f"Run {what}{' as edited' if self._edited is not None else ''}? {choices}, [{_HELP}]: "

    def _choice(self, typed: str) -> str:
        """Return the key of what was typed; empty if it is none that is offered."""
        if typed == _HELP:
            return _HELP
        return next((key for key, word, _, _ in self._offered() if typed.lower() in (key, word)), "")

    def _help(self) -> str:
        rows = [f"  {key}  {explained}\n" for key, _, _, explained in self._offered()]
        return "".join([*rows, "  Ctrl-D is no, and Ctrl-C ends the run. Anything else decides nothing.\n"])
