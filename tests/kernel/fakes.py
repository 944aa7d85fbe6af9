"""A server's end of the link inside the test: answers at once, in the thread that asks, by a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.kernel.cells import Cell
from jupyter_agentbox.protocol import messages
from jupyter_agentbox.protocol.messages import (
    Call,
    Failure,
    FromKernel,
    FromServer,
    GetModule,
    Hello,
    ListPending,
    ListServers,
    Question,
    Reply,
    Waiting,
    Welcome,
)

Script = Callable[[Call], Iterable[FromServer]]


def reply(question: Question, **result: Any) -> Reply:
    """Return the reply of a tool whose result has these fields."""
    return Reply(id=question.id, content=ToolResult(**result).to_json())


def approved(call: Call) -> list[FromServer]:
    """Ask a person, who allows the call; the tool gives its arguments back."""
    return [Waiting(id=call.id, request_id="r1"), reply(call, structured={"echo": call.arguments})]


def rejected(call: Call) -> list[FromServer]:
    """Ask a person, who rejects the call."""
    waiting = Waiting(id=call.id, request_id="r1")
    failure = Failure(
        id=call.id, code="rejected", message="`x` was rejected", request_id="r1", details={"reason": "too many"}
    )
    return [waiting, failure]


class ServerEnd:
    """Answers a kernel's messages.

    Parameters
    ----------
    servers : dict of str to list of ToolDescription
        The configured MCP servers.
    """

    def __init__(self, servers: Mapping[str, list[ToolDescription]] | None = None) -> None:
        self.servers = dict(servers or {})
        self.script: Script = approved
        self.pending: list[JsonValue] = []
        self.problems: list[JsonValue] = []
        self.file: JsonValue = "/home/ada/.jupyter/mcp.json"
        self.error = ""
        self.here = True
        self.received: list[FromKernel] = []

    @property
    def calls(self) -> list[Call]:
        """The calls that came."""
        return [message for message in self.received if isinstance(message, Call)]

    def answers(self, message: FromKernel) -> Iterable[FromServer]:
        """Return what the server says to a message."""
        self.received.append(message)
        if not self.here:
            return []
        match message:
            case Hello():
                return [Welcome(server_version="0.1.0", url="http://localhost:8888/lab")]
            case ListServers():
                listed: list[JsonValue] = [
                    {"name": name, "state": "running", "error": self.error, "tool_count": len(tools)}
                    for name, tools in self.servers.items()
                ]
                return [Reply(id=message.id, content={"servers": listed, "problems": self.problems, "file": self.file})]
            case ListPending():
                return [Reply(id=message.id, content={"approvals": self.pending})]
            case GetModule():
                return [Reply(id=message.id, content=self._module(message.server))]
            case Call():
                return self.script(message)
            case _:
                return []

    def _module(self, server: str) -> JsonObject:
        generated = generate_module(server, self.servers[server])
        by_name = {tool.name: tool for tool in self.servers[server]}
        tools: list[JsonValue] = [
            {
                "name": wire,
                "function": function,
                "title": by_name[wire].title,
                "description": by_name[wire].description,
                "annotations": dict(by_name[wire].annotations),
            }
            for wire, function in generated.functions
        ]
        return {"source": generated.source, "tools": tools}


class FakeTransport:
    """Carries messages to a `ServerEnd` and back, and keeps what was published."""

    def __init__(self, server: ServerEnd) -> None:
        self.server = server
        self.published: list[tuple[str, dict[str, Any], Cell]] = []
        self.receive: Callable[[Any], None] = lambda _data: None

    def listen(self, receive: Callable[[Any], None]) -> None:
        self.receive = receive

    def send(self, message: JsonObject) -> None:
        for answer in self.server.answers(messages.from_kernel(message)):
            self.tell(answer)

    def tell(self, message: FromServer) -> None:
        """Send the kernel a message."""
        self.receive(messages.to_json(message))

    def publish(self, kind: str, content: Mapping[str, Any], cell: Cell) -> None:
        self.published.append((kind, dict(content), cell))

    @property
    def texts(self) -> list[str]:
        """The plain texts of what was published."""
        return [content["data"]["text/plain"] for _, content, _ in self.published]


class FakeTimers:
    """Timers that go off when a test says so."""

    def __init__(self) -> None:
        self.acts: dict[FakeTimer, Callable[[], None]] = {}

    def later(self, _seconds: float, act: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(self)
        self.acts[timer] = act
        return timer

    def go_off(self) -> None:
        acts, self.acts = self.acts, {}
        for act in acts.values():
            act()


class FakeTimer:
    """One of them."""

    def __init__(self, timers: FakeTimers) -> None:
        self._timers = timers

    def cancel(self) -> None:
        self._timers.acts.pop(self, None)
