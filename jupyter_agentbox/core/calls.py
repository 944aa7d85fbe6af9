"""Tool calls: the arguments, the origin, and the digest that identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from jupyter_agentbox.exceptions import ToolArgumentsError

from .askers import Asker, name_of
from .isolation import Isolation
from .reported_origins import ReportedOrigin

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]


#: Maximum nesting depth of arguments: their consumers (validators, forms, other languages) are recursive.
MAX_DEPTH: Final = 100
#: Maximum size of an integer: about 3,000 digits; Python's own limit is 4,300.
MAX_INTEGER_BITS: Final = 10_000

#: Size in bytes from which arguments are long: too long for lists, or to be parsed while others wait.
LONG: Final = 16_384
#: How many characters of long arguments a list shows.
HEAD: Final = 500
#: Approximate size of a number or a bracket, in bytes.
_VALUE: Final = 4

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

_TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} levels deep"


def canonical_json(value: object) -> str:
    """Serialize to the one JSON text that equal values share.

    Keys are sorted, no white space, no ASCII escapes; after RFC 8785 in all but number formatting. Different values
    have different texts: what Python's ``json`` would quietly make equal (a key ``1`` and a key ``"1"``) is refused.

    Raises
    ------
    ValueError
        If the value contains a NaN, an infinity or an integer of more than `MAX_INTEGER_BITS`, or is nested deeper than
        `MAX_DEPTH`.
    TypeError
        If the value contains something that is not JSON, or a key that is not a string.
    """
    try:
        text = _CANONICAL.encode(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check_json(value)
    return text


def check_arguments(arguments: Mapping[str, JsonValue]) -> None:
    """Check that the arguments are JSON that can be sent, stored and hashed.

    Raises
    ------
    ToolArgumentsError
        With the parameter's name in `parameter`.
    """
    try:
        canonical_json([arguments])  # one level deeper, as in a digest and in a record
    except (TypeError, ValueError):
        _check_each(arguments)


def _check_each(arguments: Mapping[str, JsonValue]) -> None:
    """Raise an error for the first argument that is not JSON."""
    for name, value in arguments.items():
        try:
            canonical_json([{name: value}])
        except (TypeError, ValueError) as error:
            raise ToolArgumentsError(f"argument `{name:.80}` is not JSON: {error}", parameter=name) from None


def is_long(arguments: Mapping[str, JsonValue], *, limit: int = LONG) -> bool:
    """Whether the arguments take about `limit` bytes or more as JSON. Stops as soon as that is known."""
    rest: list[JsonValue] = list(arguments.values())
    size = sum(map(len, arguments))
    while rest:
        item = rest.pop()
        size += len(item) if isinstance(item, str) else _VALUE
        if isinstance(item, dict):
            rest.extend(item.values())
            size += sum(map(len, item))
        elif isinstance(item, list | tuple):
            rest.extend(item)
        if size + len(rest) >= limit:
            return True
    return size >= limit


def _check_json(value: object) -> None:
    """Reject values that ``json.dumps`` accepts. Iterates level by level, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    if any(isinstance(item, dict | list | tuple) or _children(item) for item in level):
        raise ValueError(_TOO_DEEP)


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r:.80} is not a string")
        return value.values()
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise ValueError("an integer has too many digits")
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Placeholder for long arguments, which lists omit and which are not stored for ever.

    Parameters
    ----------
    size : int
        Size of the arguments as JSON, in bytes.
    head : str
        The beginning of that JSON.
    """

    size: int
    head: str

    @classmethod
    def of(cls, text: str) -> Omission:
        """Return the placeholder for arguments given as JSON."""
        return cls(size=len(text.encode("utf-8", "surrogatepass")), head=text[:HEAD])

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {"size": self.size, "head": self.head}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRef:
    """Reference to a turn of an agent.

    Parameters
    ----------
    thread_id, turn_id : str
        The thread's and the turn's id.
    """

    thread_id: str
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a call came from. The server fills it in; the calling code cannot set `kernel_id`.

    Parameters
    ----------
    kernel_id : str or None
        The kernel whose code made the call; ``None`` outside a kernel.
    notebook_path : str or None
        The notebook or console of that kernel, relative to the server's root directory, with ``/``.
    cell_id : str or None
        The notebook cell that made the call. Reported by the kernel, so it is a hint for the page, not evidence.
    thread_id, turn_id : str or None
        The agent's thread and turn, for code that an agent runs and for the calls of that code.
    isolation : Isolation
        The kernel's level of isolation, as known to whoever started it.
    has_own_settings : bool
        Whether the kernel's sandbox has settings that its user chose, where an administrator could have.
    person : str or None
        Who made the call in the panel, without code, as identified by the server.
    askers : tuple of Asker
        Who has run code in that kernel, as the server observed it. Of several, any may have made the call: the code's
        own claim proves nothing. Not part of the digest.
    groups : frozenset of str, or None
        The calling user's JupyterHub groups, if users make calls rather than kernels; ``None`` if unknown. Not part of
        the digest.
    reported : ReportedOrigin or None
        Where the call came from according to the user's own server, if users make calls rather than kernels. Not part
        of the digest, and read by no rule.
    """

    kernel_id: str | None = None
    notebook_path: str | None = None
    cell_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    isolation: Isolation = Isolation.NONE
    has_own_settings: bool = False
    person: str | None = None
    askers: tuple[Asker, ...] = ()
    groups: frozenset[str] | None = None
    reported: ReportedOrigin | None = None

    @property
    def asked_by(self) -> str | None:
        """The name of the only possible caller; ``None`` if that is unknown."""
        return name_of(self.askers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of one tool, exactly as it would run.

    Parameters
    ----------
    server : str
        The MCP server's name in its configuration.
    tool : str
        The tool's wire name, never a Python name.
    arguments : dict
        JSON arguments under their wire names. Do not mutate; use `with_arguments`.
    origin : Origin
        Where the call came from.
    omitted : Omission or None
        Placeholder for omitted arguments; then `arguments` is empty, and the call cannot run.
    known_digest : str
        The digest, if already computed.
    """

    server: str
    tool: str
    arguments: Mapping[str, JsonValue]
    origin: Origin = field(default_factory=Origin)
    omitted: Omission | None = None
    known_digest: str = field(default="", compare=False, repr=False)

    @property
    def qualified_name(self) -> str:
        """``server.tool``, for people and for rules."""
        return f"{self.server}.{self.tool}"

    @property
    def digest(self) -> str:
        """SHA-256 of the call's canonical JSON, in lower-case hex.

        The origin is included: the same arguments from another kernel are another call.
        """
        if not self.known_digest:
            object.__setattr__(self, "known_digest", self._compute_digest())  # calls are immutable
        return self.known_digest

    def _compute_digest(self) -> str:
        # Optional parts are appended for a sandbox, its own settings, a turn and a person, so that digests of other
        # calls did not change.
        sandbox = [] if self.origin.isolation is Isolation.NONE else [self.origin.isolation.value]
        own = [{"own_settings": True}] if self.origin.has_own_settings else []
        turn = [] if self.origin.turn_id is None else [{"turn": self.origin.turn_id}]
        person = [] if self.origin.person is None else [{"person": self.origin.person}]
        value = {
            "server": self.server,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "origin": [
                self.origin.kernel_id,
                self.origin.notebook_path,
                self.origin.cell_id,
                self.origin.thread_id,
                *sandbox,
                *own,
                *turn,
                *person,
            ],
        }
        return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def is_whole(self) -> bool:
        """Whether the digest matches the arguments: a record may lack secrets or long arguments."""
        return self.omitted is None and self._compute_digest() == self.digest

    def with_arguments(self, arguments: Mapping[str, JsonValue]) -> ToolCall:
        """Return the call with other arguments, and so with another digest."""
        return replace(self, arguments=dict(arguments), omitted=None, known_digest="")
