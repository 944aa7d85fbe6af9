"""Tool calls: what would run, where it came from, and the digest that names exactly that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from jupyter_agentbox.exceptions import ToolArgumentsError

from .askers import Asker, name_of
from .isolation import Isolation

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]


#: How deep arguments may be nested: what reads them further on (validators, forms, other languages) recurses.
MAX_DEPTH: Final = 100
#: How many bits an integer may have: about 3,000 digits; Python by itself refuses to write more than 4,300.
MAX_INTEGER_BITS: Final = 10_000

#: Bytes from which on arguments are long: too long for a list of requests, or to be read while others wait.
LONG: Final = 16_384
#: Characters of long arguments that a list shows.
HEAD: Final = 500
#: Bytes that a number or a bracket takes, about.
_VALUE: Final = 4

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

_TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} levels deep"


def canonical_json(value: object) -> str:
    """Serialise to the one JSON text that equal values share.

    Keys are sorted, no white space, no ASCII escapes; after RFC 8785 in all but number formatting. Different values
    have different texts: what Python's ``json`` would quietly make equal (a key ``1`` and a key ``"1"``) is refused.

    Raises
    ------
    ValueError
        If the value holds a NaN, an infinity, an integer of more than `MAX_INTEGER_BITS`, or is nested deeper than
        `MAX_DEPTH`.
    TypeError
        If the value holds something that is not JSON, or a key that is no string.
    """
    try:
        text = _CANONICAL.encode(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check_json(value)
    return text


def check_arguments(arguments: Mapping[str, JsonValue]) -> None:
    """Do nothing if the arguments are JSON that can be sent, kept and named by a digest.

    Raises
    ------
    ToolArgumentsError
        With the parameter's name in `parameter`.
    """
    try:
        canonical_json(arguments)
    except (TypeError, ValueError):
        _check_each(arguments)


def _check_each(arguments: Mapping[str, JsonValue]) -> None:
    """Say which of the arguments is no JSON."""
    for name, value in arguments.items():
        try:
            canonical_json({name: value})
        except (TypeError, ValueError) as error:
            raise ToolArgumentsError(f"argument `{name:.80}` is not JSON: {error}", parameter=name) from None


def is_long(arguments: Mapping[str, JsonValue], *, limit: int = LONG) -> bool:
    """Whether the arguments take about `limit` bytes or more as JSON. Looks at no more of them than it needs."""
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
    """Refuse what ``json.dumps`` lets pass. Goes level by level, so it needs no recursion."""
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
    """Long arguments that are not here: they are left out of lists, and not kept for ever.

    Parameters
    ----------
    size : int
        Bytes that they have as JSON.
    head : str
        Their first characters as JSON.
    """

    size: int
    head: str

    @classmethod
    def of(cls, text: str) -> Omission:
        """Return what stands for arguments, given as JSON."""
        return cls(size=len(text.encode("utf-8", "surrogatepass")), head=text[:HEAD])

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {"size": self.size, "head": self.head}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRef:
    """Names a turn of an agent.

    Parameters
    ----------
    thread_id, turn_id : str
        The thread's and the turn's id.
    """

    thread_id: str
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a call came from. The server fills it in; the code that calls has no say in `kernel_id`.

    Parameters
    ----------
    kernel_id : str or None
        The kernel whose code called, ``None`` outside a kernel.
    notebook_path : str or None
        The notebook or console of that kernel, relative to the server's root directory, with ``/``.
    cell_id : str or None
        The notebook cell that called. The kernel reports it, so it is a hint for the page, not evidence.
    thread_id, turn_id : str or None
        The agent's thread and its turn, for code that an agent runs and for the calls of that code.
    isolation : Isolation
        How far the kernel is kept from the rest of the machine, as whoever started it knows.
    person : str or None
        Who made the call without any code, in the panel; as the server knows them.
    askers : tuple of Asker
        Who has had code run in that kernel, as the server observed it. Of several, any may have asked: what code says
        of that proves nothing. No part of the digest.
    groups : frozenset of str, or None
        The groups of the user who calls, as JupyterHub said, where users call and no kernels; ``None`` if they are not
        known. No part of the digest.
    """

    kernel_id: str | None = None
    notebook_path: str | None = None
    cell_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    isolation: Isolation = Isolation.NONE
    person: str | None = None
    askers: tuple[Asker, ...] = ()
    groups: frozenset[str] | None = None

    @property
    def asked_by(self) -> str | None:
        """Whose call it is, if it can be nobody else's; ``None`` if that is not known."""
        return name_of(self.askers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of one tool, exactly as it would run.

    Parameters
    ----------
    server : str
        The MCP server's name in the configuration.
    tool : str
        The tool's wire name, never a mapped one.
    arguments : dict
        JSON arguments under their wire names. Not to be changed: edit with `with_arguments`.
    origin : Origin
        Where the call came from.
    omitted : Omission or None
        What stands for arguments that are not here; then `arguments` is empty, and the call cannot run.
    known_digest : str
        The digest, where it was computed before.
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

        The origin is part of it: the same arguments from another kernel are another call.
        """
        if not self.known_digest:
            object.__setattr__(self, "known_digest", self._compute_digest())  # a call never changes
        return self.known_digest

    def _compute_digest(self) -> str:
        # A sandbox, a turn and a person lengthen the list of the origin: the digests of other calls stay as they were.
        sandbox = [] if self.origin.isolation is Isolation.NONE else [self.origin.isolation.value]
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
                *turn,
                *person,
            ],
        }
        return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are what the digest was made of: a record may lack secrets, or leave long ones out."""
        return self.omitted is None and self._compute_digest() == self.digest

    def with_arguments(self, arguments: Mapping[str, JsonValue]) -> ToolCall:
        """Return the call with other arguments and, so, another digest."""
        return replace(self, arguments=dict(arguments), omitted=None, known_digest="")
