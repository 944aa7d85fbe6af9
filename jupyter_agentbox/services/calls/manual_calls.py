"""Calls that a person makes in the panel to try a tool: without code, but with approval."""

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
from .started_calls import StartedCalls

#: How many calls' results are kept in memory.
MOST_RESULTS: Final = 20
#: Larger results, in characters of JSON, are not kept.
LONGEST_RESULT: Final = 2_000_000

#: Names of this package's own tool servers, which are called in other ways.
_NO_SERVERS: Final = frozenset({OWN_SERVER, NOTEBOOK_SERVER, SHELL_SERVER})

_WHY_IT_ASKS: Final = "a call that is made in the panel always asks"


class ManualCalls:
    """Makes calls for people, and keeps their results for a while.

    No rule or grant allows such a call: the API's token, which code in a plain kernel may have, must not be a way
    around approval. Rules that deny a call apply here, too.

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
        """Request approval of a call, and return the request.

        Parameters
        ----------
        server, tool, arguments
            The call.
        person : str
            Who makes the call.
        askers : tuple of Asker
            The same person, with how their request arrived.

        Raises
        ------
        ToolArgumentsError
            The arguments are invalid; nobody was asked.
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
        """Return a call's ``result`` or ``error``; ``None`` if the call is unknown.

        Both are ``None`` until it ends.
        """
        return {"result": None, "error": None} if request_id in self._started else self._results.get(request_id)

    async def cancel(self, request_id: str) -> bool:
        """Withdraw or cancel a call; return whether there was an unfinished one."""
        return await self._started.cancel(request_id)

    async def aclose(self) -> None:
        """Withdraw or cancel all calls."""
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
