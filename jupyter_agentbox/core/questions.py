"""What an MCP server asks a person while one of its tools runs. Its answer approves nothing."""

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

#: Characters of a server's message that are taken.
LONGEST_MESSAGE: Final = 4_000
#: Characters of an address.
LONGEST_URL: Final = 2_000
#: Fields of a form, and choices of a field.
MOST_FIELDS: Final = 30
MOST_CHOICES: Final = 100
#: Characters of a field's name, of its title and of a choice; of its description.
LONGEST_LABEL: Final = 200
LONGEST_DESCRIPTION: Final = 1_000

_FORMATS: Final = ("email", "uri", "date", "date-time")
#: By the type of a field: what of its schema is kept, and of which types that must be.
_KEPT: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    "string": {"minLength": (int,), "maxLength": (int,), "default": (str,)},
    "number": {"minimum": (int, float), "maximum": (int, float), "default": (int, float)},
    "integer": {"minimum": (int, float), "maximum": (int, float), "default": (int,)},
    "boolean": {"default": (bool,)},
    "array": {"minItems": (int,), "maxItems": (int,)},
}
#: To a page that is no name of a field but the object's prototype: it would vanish from the form.
_NO_NAME: Final = "__proto__"
#: Visible ASCII. Browsers read a backslash as a slash, so that another host would be opened than the one that is shown.
_ADDRESS: Final = re.compile(r"https?://[!-\[\]-~]+", re.IGNORECASE)


class QuestionMode(str, Enum):
    """How a server asks."""

    FORM = "form"
    """For values that the person types or chooses."""

    URL = "url"
    """To open a page, where the person deals with somebody else; nothing of that comes here."""


class QuestionAction(str, Enum):
    """What a person makes of a question."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerQuestion:
    """What a server asks. All of it is untrusted.

    Parameters
    ----------
    mode : QuestionMode
        For values, or to open a page.
    message : str
        What it says, for people.
    schema : dict
        Of the values: a JSON Schema of flat fields, as `flat_schema` makes it.
    url : str
        The page.
    calls : int
        How many calls of the server run; if more than one, it does not say for which of them it asks.
    """

    mode: QuestionMode
    message: str
    schema: JsonObject = field(default_factory=dict)
    url: str = ""
    calls: int = 1

    @classmethod
    def of_form(cls, message: str, schema: JsonValue) -> ServerQuestion:
        """Make a question for values.

        Raises
        ------
        ValueError
            It is too long, or asks for what is no flat field.
        """
        return cls(mode=QuestionMode.FORM, message=_short(message, LONGEST_MESSAGE), schema=flat_schema(schema))

    @classmethod
    def of_url(cls, message: str, url: str) -> ServerQuestion:
        """Make a question to open a page.

        Raises
        ------
        ValueError
            It is too long, or no plain address of a page.
        """
        return cls(mode=QuestionMode.URL, message=_short(message, LONGEST_MESSAGE), url=_checked_url(url))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswer:
    """What a server is answered.

    Parameters
    ----------
    action : QuestionAction
        Accepted, declined, or neither of the two.
    content : dict
        The values of an accepted form, by the name of the field.
    reviewer : Reviewer or None
        Who answered; ``None`` if nobody did.
    """

    action: QuestionAction
    content: JsonObject = field(default_factory=dict)
    reviewer: Reviewer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that waits for a person.

    Parameters
    ----------
    id : str
        Unguessable, unique.
    request_id : str
        The call that runs.
    server, tool : str
        The server that asks, and its tool that runs.
    origin : Origin
        Where the call came from.
    question : ServerQuestion
        What it asks.
    asked_at : datetime
        With time zone.
    expires_at : datetime or None
        When the server is told that nobody answered; ``None`` if never.
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
    """What is kept of a question.

    Parameters
    ----------
    mode, message, url
        As it was asked, without secrets; of the page's address, what stands before its query.
    action : QuestionAction
        What the server was told.
    content : tuple of (str, JSON)
        The fields and their values, without secrets.
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
    """Return the schema of a form's fields with what is known of it, and nothing else.

    Raises
    ------
    ValueError
        A field is not a text, a number, a yes or no, or a choice; or there are too many.
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
    """Return what is known of the limits, the format and the default of a field."""
    kept: JsonObject = {}
    for key, types in _KEPT[kind].items():
        value = source.get(key)
        if isinstance(value, types) and isinstance(value, bool) == (bool in types) and _is_json(value):
            kept[key] = _short(value, LONGEST_MESSAGE) if isinstance(value, str) else value
    if kind == "string" and source.get("format") in _FORMATS:
        kept["format"] = source["format"]
    return kept


def _is_json(value: object) -> bool:
    """Whether a value is none of the numbers that JSON does not have, and none that nothing can show."""
    try:
        canonical_json(value)
    except ValueError:
        return False
    return True


def _texts(source: JsonObject) -> JsonObject:
    """Return what a field says of itself."""
    found = (("title", LONGEST_LABEL), ("description", LONGEST_DESCRIPTION))
    return {key: _short(text, most) for key, most in found if isinstance(text := source.get(key), str)}


def _choices(source: JsonValue) -> JsonObject:
    """Return the values that may be chosen, and what each is called where that is not the value itself."""
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
    """Read what a person makes of a question. Who it is, the session says.

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
