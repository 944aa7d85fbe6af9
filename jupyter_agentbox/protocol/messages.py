"""The kernel link's messages, and their parsing from untrusted JSON.

The kernel side publishes its messages as ``comm_msg`` on IOPub, on a comm whose id starts with `COMM_PREFIX`; the
server responds with ``comm_msg`` on the kernel's **control** channel, because a blocked cell blocks the shell channel.
None of these messages contains a decision. ::

    kernel                              server
    Hello          ──────────────────►
                   ◄──────────────────  Welcome
    ListServers    ──────────────────►  Reply | Failure
    GetModule      ──────────────────►  Reply | Failure
                   ◄──────────────────  ToolsChanged to whoever got the module: its server has other tools now
    Call           ──────────────────►
                   ◄──────────────────  Waiting      only if a person is asked; the card shows `request_id`
                   ◄──────────────────  Running
                   ◄──────────────────  Reply | Failure
    Cancel         ──────────────────►               nobody waits for these calls any more; no answer
    StartTurn      ──────────────────►
                   ◄──────────────────  TurnEvent    what happens in the agent's turn
                   ◄──────────────────  RunCode      approved code, to be run in the cell that asked
    CodeRan        ──────────────────►
                   ◄──────────────────  GetVariables answered with a CodeRan, too
                   ◄──────────────────  Reply | Failure
    AgentCommand   ──────────────────►  Reply | Failure
    Ping           ──────────────────►  Pong         which of the calls that the kernel waits for are unknown here
                   ◄──────────────────  Unfinished   what is unfinished here; answered with a Cancel of the unknown ids

The kernel repeats a `Call` that nothing has answered; the server knows it by (comm id, call id) and acts once.
`Unfinished` is for lines that lose messages: a kernel's `Ping` or `Cancel` may be among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.exceptions import ToolArgumentsError

#: Version of these messages; both sides refuse other versions.
VERSION: Final = 1
#: Prefix of the comm ids of kernel sides. IOPub topics of comm messages are ``comm-<comm_id>``.
COMM_PREFIX: Final = "agentbox-"
#: The comm's target name.
COMM_TARGET: Final = "jupyter_agentbox"
#: The MIME type of a card in an output: ``{"request_id": str}``.
CARD_MIME_TYPE: Final = "application/vnd.jupyter-agentbox.request+json"
#: Maximum size of a message from a kernel, in bytes: the server must keep, show and send all of it.
MAX_MESSAGE: Final = 32_000_000
#: Maximum length of the id of a message, a cell or a comm, in characters.
MAX_ID: Final = 200
#: Maximum length of the output and of the error in a `CodeRan`, in characters. The model is sent less.
MAX_CODE_TEXT: Final = 200_000
#: The MIME type of an item of an agent's turn in an output:
#: ``{"thread_id": str, "turn_id": str, "item": item, "is_complete": bool, "is_answer": bool}``.
ITEM_MIME_TYPE: Final = "application/vnd.jupyter-agentbox.item+json"
#: The beginning of a kernel side's message, to find the id of one that is too large to be parsed.
_HEAD: Final = re.compile(rb'\{(?:"data": ?\{)?"type": ?"[a-z_]{1,20}", ?"id": ?"([A-Za-z0-9_-]{1,200})"')


class MessageError(ValueError):
    """The message does not belong to this protocol."""


class TooLargeError(MessageError):
    """The message is too large to be parsed.

    Parameters
    ----------
    message : str
        What is too large, and the limit.
    id : str or None
        The message's id, if it was found.
    """

    def __init__(self, message: str, *, id: str | None) -> None:
        super().__init__(message)
        self.id = id


def head_id(data: bytes) -> str | None:
    """Return the id of a message from its beginning; ``None`` if it does not begin as a kernel side writes it."""
    found = _HEAD.match(data)
    return None if found is None else found[1].decode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The kernel side is loaded and looks for a server."""

    type: ClassVar[str] = "hello"
    version: int = VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """A server responds. `url` is the page where a person decides, for front ends without the extension; no token."""

    type: ClassVar[str] = "welcome"
    version: int = VERSION
    server_version: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListServers:
    """Requests ``{"servers": [{"name", "state", "error", "tool_count"}]}``."""

    type: ClassVar[str] = "list_servers"
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetModule:
    """Requests ``{"source": str, "tools": [{"name", "function", "title", "description"}]}`` of one server."""

    type: ClassVar[str] = "get_module"
    id: str
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPending:
    """Requests ``{"approvals": [{"id", "server", "tool", "created_at", "expires_at"}]}`` of this kernel."""

    type: ClassVar[str] = "list_pending"
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Requests a tool call. The result is a `Reply` with a `ToolResult` as JSON."""

    type: ClassVar[str] = "call"
    id: str
    server: str
    tool: str
    arguments: JsonObject
    cell_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTurn:
    """Requests a turn of the notebook's thread. The reply has the ended turn, ``{"turn": turn}``.

    `options` may have ``thread``, ``new``, ``mode``, ``model``, ``backend``, ``steps`` and ``context``.
    """

    type: ClassVar[str] = "start_turn"
    id: str
    prompt: str
    options: JsonObject = field(default_factory=dict)
    cell_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRan:
    """The outcome of code, or a list of variables. `id` is that of the `StartTurn`.

    For code, `content` has ``status`` (``completed``, ``failed`` or ``interrupted``), ``text``, ``error`` and
    ``images``; for variables, ``text``.
    """

    type: ClassVar[str] = "code_ran"
    id: str
    run_id: str
    content: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """A command of ``%agent``; the reply has ``{"text": str}``."""

    type: ClassVar[str] = "agent_command"
    id: str
    command: str
    arguments: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Cancels calls or turns for which nobody waits any more."""

    type: ClassVar[str] = "cancel"
    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """The ids of the messages whose replies this kernel side waits for."""

    type: ClassVar[str] = "ping"
    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The call waits for a person."""

    type: ClassVar[str] = "waiting"
    id: str
    request_id: str
    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The call was approved, by a person or a rule, and is running."""

    type: ClassVar[str] = "running"
    id: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The running call's server asks a person a question. Neither the question nor the answer is sent to kernels."""

    type: ClassVar[str] = "asked"
    id: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """An event of the turn. `event` is the same as in the REST API's stream of events."""

    type: ClassVar[str] = "turn_event"
    id: str
    event: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCode:
    """Requests to run code in the turn's cell. It was approved, and is recorded as running."""

    type: ClassVar[str] = "run_code"
    id: str
    run_id: str
    code: str
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetVariables:
    """Requests a list of the variables."""

    type: ClassVar[str] = "get_variables"
    id: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to the message with this id."""

    type: ClassVar[str] = "reply"
    id: str
    content: JsonObject
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The message with this id failed. `code` is one of `jupyter_agentbox.exceptions.ERRORS_BY_CODE`."""

    type: ClassVar[str] = "failure"
    id: str
    code: str
    message: str
    request_id: str | None = None
    details: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """The ids of the messages that the server has not replied to yet: it is alive, and working on them."""

    type: ClassVar[str] = "unfinished"
    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """The MCP server has other tools than in the module that was last sent."""

    type: ClassVar[str] = "tools_changed"
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """The ids in a `Ping` that this server does not know: it was restarted, or never received them."""

    type: ClassVar[str] = "pong"
    unknown: list[str]


def too_large(error: TooLargeError) -> Failure:
    """Return the response to a message that is too large to be parsed."""
    text = f"{error}: nobody was asked, and nothing ran. Pass large data by file name or in parts."
    return Failure(id=error.id or "", code=ToolArgumentsError.code, message=text)


#: Messages that are answered with a `Reply` or a `Failure`.
Question = ListServers | GetModule | ListPending | Call | StartTurn | AgentCommand
#: Messages to a kernel side about its turn, until it ends.
TurnNews = TurnEvent | RunCode | GetVariables
FromKernel = Hello | Question | CodeRan | Cancel | Ping
FromServer = Welcome | Waiting | Running | Asked | TurnNews | Reply | Failure | Pong | Unfinished | ToolsChanged
Message = FromKernel | FromServer

_FROM_KERNEL: Final = {
    cls.type: cls
    for cls in (
        *(Hello, ListServers, GetModule, ListPending, Call),
        *(StartTurn, CodeRan, AgentCommand, Cancel, Ping),
    )
}
_FROM_SERVER: Final = {
    cls.type: cls
    for cls in (
        *(Welcome, Waiting, Running, Asked, Reply, Failure),
        *(TurnEvent, RunCode, GetVariables, Pong, Unfinished, ToolsChanged),
    )
}

#: The fields of each type of message, with the types that its class declares.
_FIELDS: Final = {
    kind: {known.name: str(known.type) for known in fields(cls)}
    for kind, cls in (*_FROM_KERNEL.items(), *_FROM_SERVER.items())
}

#: The Python types for a field's annotation.
_CHECKS: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "str | None": (str, type(None)),
    "JsonObject": (dict,),
    "list[str]": (list,),
}


def to_json(message: Message) -> JsonObject:
    """Return the message as JSON, with its ``type``."""
    return {"type": message.type, **{name: getattr(message, name) for name in _FIELDS[message.type]}}


def from_kernel(value: JsonValue) -> FromKernel:
    """Parse a message from a kernel, which is untrusted, because the kernel runs the code under review.

    Raises
    ------
    MessageError
        If it is no message of this protocol and version.
    """
    return _read(value, _FROM_KERNEL)  # type: ignore[arg-type, return-value]  # the table has just these classes


def from_server(value: JsonValue) -> FromServer:
    """Parse a message from the server.

    Raises
    ------
    MessageError
        If it is no message of this protocol and version.
    """
    return _read(value, _FROM_SERVER)  # type: ignore[arg-type, return-value]  # the table has just these classes


def _read(value: JsonValue, classes: dict[str, type[Message]]) -> Message:
    if not isinstance(value, dict):
        raise MessageError("a message must be a JSON object")
    contents = dict(value)
    kind = contents.pop("type", None)
    if not isinstance(kind, str) or kind not in classes:
        raise MessageError(f"unknown message type {kind!r:.80}" if isinstance(kind, str) else "a message needs a type")
    known = _FIELDS[kind]
    for name, content in contents.items():
        if name not in known:
            raise MessageError(f"`{kind}` has no field {name!r:.80}")
        if not isinstance(content, _CHECKS[known[name]]) or isinstance(content, bool):
            raise MessageError(f"`{kind}.{name}` must be {known[name]}")
        if isinstance(content, list) and not all(isinstance(item, str) for item in content):
            raise MessageError(f"`{kind}.{name}` must be a list of strings")
        if name in ("id", "cell_id", "run_id") and isinstance(content, str) and len(content) > MAX_ID:
            raise MessageError(f"`{kind}.{name}` has more than {MAX_ID} characters")
    try:
        message = classes[kind](**contents)  # type: ignore[arg-type]  # the loop above checked the types
    except TypeError as error:
        raise MessageError(f"`{kind}` lacks a field: {error}") from None
    if getattr(message, "version", VERSION) != VERSION:
        raise MessageError(f"protocol version {getattr(message, 'version', None)}; this side speaks {VERSION}")
    return message
