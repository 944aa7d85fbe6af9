"""Calls that a person makes in the panel, to try a tool: no code is involved, and each is asked about all the same."""

from __future__ import annotations

import json
from collections import OrderedDict
from functools import partial
from typing import Final

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonObject, Origin, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.registration import OWN_SERVER
from jupyter_agentbox.exceptions import AgentBoxError, UnknownServerError
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER
from jupyter_agentbox.protocol.shell import SHELL_SERVER

from .manager import CallManager, FinishedCall
from .started import StartedCalls

#: Of so many calls the result is kept, in memory.
MOST_RESULTS: Final = 20
#: A result that takes more, in characters of JSON, is not kept.
LONGEST_RESULT: Final = 2_000_000

#: Names that stand for this package's own tools, which are reached in other ways.
_NO_SERVERS: Final = frozenset({OWN_SERVER, NOTEBOOK_SERVER, SHELL_SERVER})

_WHY_IT_ASKS: Final = "a call that is made in the panel always asks"


class ManualCalls:
    """Makes calls for people, and keeps their results for a while.

    No rule and no lasting answer allows such a call: the API's token, which code in a plain kernel can have, must not
    be a way round asking. What denies a call denies it here, too.

    Parameters
    ----------
    calls : CallManager
        Asks, runs and records, as for any call.
    """

    def __init__(self, calls: CallManager) -> None:
        self._calls = calls
        self._started = StartedCalls("a call from the panel")
        self._results: OrderedDict[str, JsonObject] = OrderedDict()

    async def begin(
        self, server: str, tool: str, arguments: JsonObject, *, person: str, askers: tuple[Asker, ...] = ()
    ) -> ApprovalRequest:
        """Ask whether to make a call, and return the request.

        Parameters
        ----------
        server, tool, arguments
            The call.
        person : str
            Who makes it.
        askers : tuple of Asker
            The same, with the way they came.

        Raises
        ------
        ToolArgumentsError
            The arguments do not fit; nobody was asked.
        ToolCallRejectedError
            A rule denies it.
        ToolServerError, TooManyRequestsError, StorageError
        """
        if server in _NO_SERVERS:
            raise UnknownServerError(f"`{server}` is not an MCP server: its tools cannot be called by hand")
        call = ToolCall(server=server, tool=tool, arguments=arguments, origin=Origin(person=person, askers=askers))
        rule = Rule.of_tool(call, Effect.ASK, layer=Layer.SESSION, reason=_WHY_IT_ASKS)
        floor = Evaluation(effect=Effect.ASK, rule=rule)
        return await self._started.begin(partial(self._calls.run, call, floor=floor), on_end=self._keep)

    def result(self, request_id: str) -> JsonObject | None:
        """Return what became of a call: its ``result``, or the ``error``; ``None`` if it is not known.

        Before its end both are ``None``.
        """
        return {"result": None, "error": None} if request_id in self._started else self._results.get(request_id)

    async def cancel(self, request_id: str) -> bool:
        """Take a call back; return whether there was one that had not ended."""
        return await self._started.cancel(request_id)

    async def aclose(self) -> None:
        """Take all of them back."""
        await self._started.aclose()

    def _keep(self, request_id: str, end: FinishedCall | AgentBoxError | None) -> None:
        self._results[request_id] = _end_to_json(end)
        while len(self._results) > MOST_RESULTS:
            self._results.popitem(last=False)


def _end_to_json(end: FinishedCall | AgentBoxError | None) -> JsonObject:
    if not isinstance(end, FinishedCall):
        return {"result": None, "error": "the call was taken back" if end is None else str(end)}
    result = end.result.to_json()
    size = len(json.dumps(result))
    if size > LONGEST_RESULT:
        return {"result": None, "error": f"it ran, and its result of {size:,} characters is too long to be shown here"}
    return {"result": result, "error": None}
