"""Questions that an MCP server asks a person during a tool call (MCP's elicitation). An answer approves nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from .calls import JsonObject, JsonValue, Origin, canonical_json
from .reviewers import Reviewer
from .times import json_time

#: Maximum length of a server's message, in characters.
LONGEST_MESSAGE: Final = 4_000
#: Maximum length of a URL.
LONGEST_URL: Final = 2_000
#: Maximum number of fields in a form, and of choices in a field.
MOST_FIELDS: Final = 30
MOST_CHOICES: Final = 100
#: Maximum length of a field's name, title or choice; below, of its description.
LONGEST_LABEL: Final = 200
LONGEST_DESCRIPTION: Final = 1_000

#: The key in an elicitation's `_meta` for `calls`, from the Hub service.
CALLS_KEY: Final = "jupyter-agentbox/calls"
_FORMATS: Final = ("email", "uri", "date", "date-time")
#: Field type -> the schema keywords that are kept, with their types.
_KEPT: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    "string": {"minLength": (int,), "maxLength": (int,), "default": (str,)},
    "number": {"minimum": (int, float), "maximum": (int, float), "default": (int, float)},
    "integer": {"minimum": (int, float), "maximum": (int, float), "default": (int,)},
    "boolean": {"default": (bool,)},
    "array": {"minItems": (int,), "maxItems": (int,)},
}
#: In a page this is the object's prototype, not a field: the value would vanish.
_NO_NAME: Final = "__proto__"
#: Visible ASCII. Browsers read a backslash as a slash, so the host opened would differ from the one shown.
_ADDRESS: Final = re.compile(r"https?://[!-\[\]-~]+", re.IGNORECASE)


class QuestionMode(str, Enum):
    """The form of a question."""

    FORM = "form"
    """Asks for values that the person types or chooses."""

    URL = "url"
    """Asks to open a page, where the person deals with a third party; the server here sees nothing of it."""


class QuestionAction(str, Enum):
    """A person's response to a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerQuestion:
    """A server's question. All of it is untrusted.

    Parameters
    ----------
    mode : QuestionMode
        Whether it asks for values or to open a page.
    message : str
        The message for people.
    schema : dict
        JSON Schema of the form's flat fields, from `flat_schema`.
    url : str
        The page's URL.
    calls : int
        Number of the server's running calls; if more than one, the question cannot be attributed to one of them.
    """

    mode: QuestionMode
    message: str
    schema: JsonObject = field(default_factory=dict)
    url: str = ""
    calls: int = 1

    @classmethod
    def of_form(cls, message: str, schema: JsonValue) -> ServerQuestion:
        """Create a question that asks for values.

        Raises
        ------
        ValueError
            It is too long, or has a field that is not flat.
        """
        return cls(mode=QuestionMode.FORM, message=_short(message, LONGEST_MESSAGE), schema=flat_schema(schema))

    @classmethod
    def of_url(cls, message: str, url: str) -> ServerQuestion:
        """Create a question that asks to open a page.

        Raises
        ------
        ValueError
            It is too long, or the URL is invalid.
        """
        return cls(mode=QuestionMode.URL, message=_short(message, LONGEST_MESSAGE), url=_checked_url(url))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswer:
    """The answer to a server's question.

    Parameters
    ----------
    action : QuestionAction
        Accept, decline or cancel.
    content : dict
        The values of an accepted form, by field name.
    reviewer : Reviewer or None
        Who answered; ``None`` if nobody did.
    """

    action: QuestionAction
    content: JsonObject = field(default_factory=dict)
    reviewer: Reviewer | None = None


#: The answer if nobody can be asked, or nobody answers in time.
NOBODY: Final = QuestionAnswer(action=QuestionAction.CANCEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that waits for a person.

    Parameters
    ----------
    id : str
        A unique, unguessable id.
    request_id : str
        The running call.
    server, tool : str
        The server that asks, and its running tool.
    origin : Origin
        Where the call came from.
    question : ServerQuestion
        The question itself.
    asked_at : datetime
        With time zone.
    expires_at : datetime or None
        When the server is told that nobody answered; ``None`` for never.
    """

    id: str
    request_id: str
    server: str
    tool: str
    origin: Origin
    question: ServerQuestion
    asked_at: datetime
    expires_at: datetime | None

    def to_json(self) -> JsonObject:
        """Return the question as the REST API sends it."""
        question = self.question
        return {
            "id": self.id,
            "request_id": self.request_id,
            "server": self.server,
            "tool": self.tool,
            "mode": question.mode.value,
            "message": question.message,
            "schema": question.schema if question.mode is QuestionMode.FORM else None,
            "url": question.url or None,
            "calls": question.calls,
            "kernel_id": self.origin.kernel_id,
            "notebook_path": self.origin.notebook_path,
            "cell_id": self.origin.cell_id,
            "thread_id": self.origin.thread_id,
            "asked_at": json_time(self.asked_at),
            "expires_at": json_time(self.expires_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecord:
    """The record of a question.

    Parameters
    ----------
    mode, message, url
        As asked, without secrets; of the URL, the part before its query.
    action : QuestionAction
        The action sent to the server.
    content : tuple of (str, JSON)
        Field names and values, without secrets.
    reviewer : Reviewer or None
        Who answered; ``None`` if nobody did.
    asked_at, answered_at : datetime
        With time zone.
    """

    mode: QuestionMode
    message: str
    url: str
    action: QuestionAction
    content: tuple[tuple[str, JsonValue], ...]
    reviewer: Reviewer | None
    asked_at: datetime
    answered_at: datetime

    def to_json(self) -> JsonObject:
        """Return the record as the REST API sends it."""
        reviewer = self.reviewer
        return {
            "mode": self.mode.value,
            "message": self.message,
            "url": self.url or None,
            "action": self.action.value,
            "content": dict(self.content),
            "reviewer": None if reviewer is None else reviewer.name,
            "via": None if reviewer is None else reviewer.via.value,
            "asked_at": json_time(self.asked_at),
            "answered_at": json_time(self.answered_at),
        }


def flat_schema(schema: JsonValue) -> JsonObject:
    """Return a form's schema, reduced to the supported keywords.

    Raises
    ------
    ValueError
        A field is not a string, number, boolean or choice; or there are too many.
    """
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict) or schema.get("type", "object") != "object":
        raise ValueError("its form has no fields")
    if len(properties) > MOST_FIELDS:
        raise ValueError(f"its form has more than {MOST_FIELDS} fields")
    if _NO_NAME in properties:
        raise ValueError(f"its form has a field `{_NO_NAME}`, which a page cannot show")
    required = schema.get("required", [])
    return {
        "type": "object",
        "properties": {_short(name, LONGEST_LABEL): _field(name, source) for name, source in properties.items()},
        "required": [name for name in properties if isinstance(required, list) and name in required],
        "additionalProperties": False,
    }


def _field(name: str, source: JsonValue) -> JsonObject:
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(kind, str) or kind not in _KEPT:
        raise ValueError(f"its field `{name:.80}` is not a text, a number, a yes or no, or a choice")
    kept = {"type": kind, **_limits(source, kind), **_texts(source)}
    if kind == "array":
        choices = _choices(source.get("items"))
        if not choices:
            raise ValueError(f"its field `{name:.80}` is a list of something other than choices")
        kept |= {"items": {"type": "string", **choices}, "uniqueItems": True}
    elif kind == "string":
        kept |= _choices(source)
    return kept


def _limits(source: JsonObject, kind: str) -> JsonObject:
    """Return the supported limits, format and default of a field."""
    kept: JsonObject = {}
    for key, types in _KEPT[kind].items():
        value = source.get(key)
        if isinstance(value, types) and isinstance(value, bool) == (bool in types) and _is_json(value):
            kept[key] = _short(value, LONGEST_MESSAGE) if isinstance(value, str) else value
    if kind == "string" and source.get("format") in _FORMATS:
        kept["format"] = source["format"]
    return kept


def _is_json(value: object) -> bool:
    """Whether a value is valid JSON and can be displayed."""
    try:
        canonical_json(value)
    except ValueError:
        return False
    return True


def _texts(source: JsonObject) -> JsonObject:
    """Return a field's title and description."""
    found = (("title", LONGEST_LABEL), ("description", LONGEST_DESCRIPTION))
    return {key: _short(text, most) for key, most in found if isinstance(text := source.get(key), str)}


def _choices(source: JsonValue) -> JsonObject:
    """Return a field's choices, with their labels where these differ."""
    if not isinstance(source, dict):
        return {}
    plain, named, titled = source.get("enum"), source.get("enumNames"), source.get("oneOf", source.get("anyOf"))
    found: list[tuple[JsonValue, JsonValue]] = []
    if isinstance(plain, list):
        names = named if isinstance(named, list) and len(named) == len(plain) else plain
        found = list(zip(plain, names, strict=True))
    elif isinstance(titled, list):
        found = [(one.get("const"), one.get("title", one.get("const"))) for one in titled if isinstance(one, dict)]
    if len(found) > MOST_CHOICES or not all(isinstance(part, str) for pair in found for part in pair):
        raise ValueError(f"its choices are not all texts, or are more than {MOST_CHOICES}")
    titles = {_short(str(value), LONGEST_LABEL): _short(str(title), LONGEST_LABEL) for value, title in found}
    choices: JsonObject = {"enum": list(titles)} if titles else {}
    if any(title != value for value, title in titles.items()):
        choices["enumNames"] = list(titles.values())
    return choices


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(_short(url, LONGEST_URL))
        is_plain = parts.hostname and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise ValueError(f"its address is not valid: {error}") from None
    if not is_plain or _ADDRESS.fullmatch(url) is None:
        raise ValueError("its address is none of a page, names a user, or has characters that are not ASCII")
    return url


def _short(text: str, most: int) -> str:
    if len(text) > most:
        raise ValueError(f"it has a text of more than {most:,} characters")
    return text


def answer_from_json(body: JsonObject) -> tuple[QuestionAction, JsonObject]:
    """Read a person's answer. The session determines who answers.

    Raises
    ------
    ValueError
        A field is missing, unknown, or of the wrong type.
    """
    if not set(body) <= {"action", "content"}:
        raise ValueError("an answer has `action` and `content`, and nothing else")
    actions = [action.value for action in QuestionAction]
    action, content = body.get("action"), body.get("content")
    if not isinstance(action, str) or action not in actions:
        raise ValueError(f"`action` must be one of {', '.join(actions)}")
    if content is not None and (not isinstance(content, dict) or action != QuestionAction.ACCEPT.value):
        raise ValueError("`content` is a JSON object, and goes with `accept` only")
    return QuestionAction(action), dict(content or {})
