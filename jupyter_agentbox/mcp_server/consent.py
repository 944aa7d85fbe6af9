"""The questions that a person is asked through the MCP client, and how the answers are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.look_alikes import LookAlike
from jupyter_agentbox.core.text import visible

ALLOW: Final = "allow"
REJECT: Final = "reject"
#: The longest reason, as for the REST API.
MAX_REASON: Final = 4_000

#: A form of primitive fields, which is all that MCP has. There is no default: a decision has to be made.
FORM: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether it may run, exactly as shown",
            "enum": [ALLOW, REJECT],
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "description": "Passed on to the code if you reject; may be left empty",
            "maxLength": MAX_REASON,
        },
    },
    "required": ["decision"],
}


_CLOSED: Final = (
    "the question was closed without a decision. A client that runs unattended closes questions by "
    "itself: use `--ask jupyterlab` to let a person decide in JupyterLab"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that a person must decide.

    Parameters
    ----------
    headline : str
        What it is about, in this package's own words.
    facts : mapping
        Everything that would run. Untrusted.
    odd : sequence of LookAlike
        Letters in names and addresses that are not what they look like.
    """

    headline: str
    facts: Mapping[str, JsonValue]
    odd: Sequence[LookAlike] = ()

    @property
    def text(self) -> str:
        """The question as text that contains nothing invisible.

        Every line of untrusted text is indented by four spaces: it cannot pass for one of this package's own lines, and
        a client that renders Markdown shows it verbatim, without links and images.
        """
        shown = visible(json.dumps(self.facts, indent=2, ensure_ascii=False, allow_nan=True))
        quoted = "\n".join(f"    {line}" for line in shown.split("\n"))
        warning = "".join(f" Look closely: {one.text}" for one in self.odd)
        return f"{self.headline}{warning} What follows is untrusted text:\n\n{quoted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A person's answer.

    Parameters
    ----------
    allowed : bool
        Whether it may run.
    reason : str
        The reason that the code is given for a rejection.
    is_anybody_there : bool
        Whether anybody was asked.
    """

    allowed: bool
    reason: str = ""
    is_anybody_there: bool = True


class ConsentSource(Protocol):
    """Asks a person questions."""

    async def ask(self, question: Question) -> Consent:
        """Return the answer. Never raises for what a client does: anything but a clear yes is a no."""


@dataclass(frozen=True, slots=True)
class Refuser:
    """A `ConsentSource` for when there is nobody to ask.

    Parameters
    ----------
    reason : str
        Why, and what to do.
    """

    reason: str

    async def ask(self, _question: Question) -> Consent:
        """Refuse."""
        return Consent(allowed=False, reason=self.reason, is_anybody_there=False)


def read_consent(action: str, content: Mapping[str, object] | None) -> Consent:
    """Read what the client sent back. Only a form that says ``allow`` allows.

    Parameters
    ----------
    action : str
        ``"accept"`` if the form was submitted, otherwise ``"decline"`` or ``"cancel"``.
    content : mapping or None
        The form.
    """
    if action == "decline":
        return Consent(allowed=False)
    if action != "accept":
        return Consent(allowed=False, reason=_CLOSED)
    decision, reason = (content or {}).get("decision"), (content or {}).get("reason") or ""
    text = reason[:MAX_REASON] if isinstance(reason, str) else ""
    if decision == ALLOW:
        return Consent(allowed=True)
    if decision == REJECT:
        return Consent(allowed=False, reason=text)
    return Consent(allowed=False, reason="the MCP client sent a form without a decision")
