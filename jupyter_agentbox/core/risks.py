"""What a call can do, in the words that cards use, as far as its server says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .calls import JsonValue
from .registration import REGISTRATION

#: What this package's own tools do, by qualified name.
_OWN: Final[Mapping[str, str]] = {
    REGISTRATION: "adds a server",
    "notebook.set_approval_mode": "lets an agent ask less",
    "notebook.run_code": "runs code",
    "shell.shell": "runs code",
    "shell.shell_magic": "runs code",
}


class Risk(Enum):
    """What a tool can do, from the least to the most; the value is its words on a card."""

    READ_ONLY = "read-only"
    CHANGES = "adds or changes data"
    UNSAID = "server does not say what it changes"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskOfCall:
    """The risk of a call.

    Parameters
    ----------
    risk : Risk
        The risk.
    text : str
        In words.
    is_claim : bool
        Whether that is what the tool's server says, which nothing checks.
    is_own : bool
        Whether the tool is this package's own, and not a server's.
    """

    risk: Risk
    text: str
    is_claim: bool
    is_own: bool


def risk_of(annotations: Mapping[str, JsonValue]) -> Risk:
    """Return the risk that a tool's MCP annotations name; of two that contradict each other, the graver one."""
    destructive = annotations.get("destructiveHint")
    if destructive is True:
        return Risk.DESTRUCTIVE
    if annotations.get("readOnlyHint") is True:
        return Risk.READ_ONLY
    return Risk.CHANGES if destructive is False else Risk.UNSAID


def risk_of_call(qualified_name: str, annotations: Mapping[str, JsonValue]) -> RiskOfCall:
    """Return the risk of a call, with its words.

    Parameters
    ----------
    qualified_name : str
        ``server.tool``.
    annotations : mapping
        The tool's MCP annotations.
    """
    own = _OWN.get(qualified_name)
    if own is not None:
        return RiskOfCall(risk=Risk.UNSAID, text=own, is_claim=False, is_own=True)
    risk = risk_of(annotations)
    return RiskOfCall(risk=risk, text=risk.value, is_claim=risk is not Risk.UNSAID, is_own=False)
