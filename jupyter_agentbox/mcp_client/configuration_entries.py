"""Pydantic models of the entries in ``mcp.json``.

Values are expanded while they are read. No message contains a value from the file: entries hold credentials.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from jupyter_agentbox.core.calls import JsonObject

from .variables import Expander, UnsetVariableError

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
#: The HTTP client would refuse a blank at an end, too, with a message that contains the value.
_HEADER_VALUE: Final = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")


class EntryError(ValueError):
    """An entry is malformed, with a problem for each of its invalid keys.

    Parameters
    ----------
    problems : mapping
        The problem of each key.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = problems


def _written(value: Any) -> Any:
    """Convert values that people write without quotes, such as ``8080`` or ``true``, to strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _expanded(value: str, info: ValidationInfo) -> str:
    return _expander(value, info).expand(value)


def _expanded_url(value: str, info: ValidationInfo) -> str:
    return _expander(value, info).expand_url(value)


def _expander(value: str, info: ValidationInfo) -> Expander:
    if "\0" in value:
        raise ValueError
    return cast(Expander, info.context)


def _without_nulls(value: Any) -> Any:
    return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, dict) else value


def _endpoint(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # raises for a port that is none
    except ValueError as error:
        raise EntryError({"url": f'"url" is not a URL: {error}'}) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EntryError({"url": '"url" must start with http:// or https:// and name a host'})
    return url


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return headers that can be sent.

    Raises
    ------
    EntryError
        If one cannot. The message contains its name, not its value.
    """
    for key, value in headers.items():
        if not _HEADER_NAME.fullmatch(key) or not _HEADER_VALUE.fullmatch(value):
            why = "begins or ends with a blank" if value != value.strip(" \t") else "has a character that HTTP forbids"
            raise EntryError({f"headers.{key}": f"the header {key!r:.40} cannot be sent: it {why}"})
    return headers


_Text = Annotated[str, AfterValidator(_expanded)]
_Scalar = Annotated[str, BeforeValidator(_written), AfterValidator(_expanded)]
_Texts = Annotated[dict[str, _Scalar], BeforeValidator(lambda value: {} if value is None else _without_nulls(value))]


class Entry(BaseModel):
    """Fields common to all servers' entries; unknown keys are left to other programs."""

    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)

    timeout: float | None = Field(None, gt=0, allow_inf_nan=False, description="a number of seconds greater than 0")
    protocolEra: str | None = Field(None, description="a string")  # noqa: N815 - as it is written in the file


class StdioEntry(Entry):
    """A server that runs as a local process."""

    command: _Text | None = Field(None, description="a string")
    args: list[_Scalar] = Field([], description="a list of strings")
    env: _Texts = Field({}, description="an object of strings")
    envFile: _Text | None = Field(None, description="a string")  # noqa: N815
    cwd: _Text | None = Field(None, description="a string")


def _command_line(value: Any) -> Any:
    """Split a command line into its words before variables are expanded, so that no value becomes several words."""
    if value is not None and not isinstance(value, str):
        raise EntryError({"headersHelper": '"headersHelper" must be a command line'})
    try:
        return None if value is None else shlex.split(value)
    except ValueError as error:
        raise EntryError({"headersHelper": f'"headersHelper" is not a command line: {str(error).lower()}'}) from None


def _program(words: list[str] | None) -> list[str] | None:
    """Refuse a program whose path depends on the working directory."""
    if words is not None and (not words or ("/" in words[0] and not words[0].startswith(("/", "~")))):
        what = "the name of a program on the PATH, or with an absolute path"
        raise EntryError({"headersHelper": f'"headersHelper" must begin with {what}'})
    return words


def _words(value: Any) -> Any:
    return value.split() if isinstance(value, str) else value


def _client(value: Any) -> Any:
    """Convert the switch ``"oauth": true`` of some programs to an object."""
    return {} if value is None or isinstance(value, bool) else value


class OAuthEntry(BaseModel):
    """OAuth settings, in the format of Claude Code, VS Code and Gemini CLI, or of Cursor."""

    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)

    clientId: Annotated[_Text | None, Field(validation_alias=AliasChoices("clientId", "CLIENT_ID"))] = None  # noqa: N815
    clientSecret: Annotated[  # noqa: N815
        _Text | None, Field(validation_alias=AliasChoices("clientSecret", "CLIENT_SECRET"))
    ] = None
    scopes: Annotated[list[_Text], BeforeValidator(_words)] = []


_Client = Annotated[OAuthEntry, BeforeValidator(_client)]


class HttpEntry(Entry):
    """A server reached over streamable HTTP."""

    oauth: _Client = Field(OAuthEntry(), description="an object, true or false")
    auth: _Client = Field(OAuthEntry(), description="an object, true or false")
    url: Annotated[str, AfterValidator(_expanded_url), AfterValidator(_endpoint)] = Field(
        "", description="a string", validate_default=True
    )
    headers: Annotated[_Texts, AfterValidator(check_headers)] = Field({}, description="an object of strings")
    headersHelper: Annotated[  # noqa: N815
        list[_Text] | None, BeforeValidator(_command_line), AfterValidator(_program)
    ] = Field(None, description="a command line")

    @property
    def client(self) -> OAuthEntry:
        """The OAuth settings: `oauth`, or else Cursor's `auth`."""
        return self.oauth if "oauth" in self.model_fields_set else self.auth


EntryT = TypeVar("EntryT", bound=Entry)


def read_stdio(entry: JsonObject, expander: Expander) -> StdioEntry:
    """Parse the entry of a local process.

    Raises
    ------
    EntryError, UnsetVariableError
    """
    return _read(StdioEntry, entry, expander)


def read_http(entry: JsonObject, expander: Expander) -> HttpEntry:
    """Parse the entry of an HTTP endpoint.

    Raises
    ------
    EntryError, UnsetVariableError
    """
    return _read(HttpEntry, entry, expander)


def _read(model: type[EntryT], entry: JsonObject, expander: Expander) -> EntryT:
    try:
        return model.model_validate(entry, context=expander)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    unset = [str(cause) for each in found if isinstance(cause := _cause(each), UnsetVariableError)]
    problems = dict(problem for each in found for problem in _problems(model, each))
    if problems:
        raise EntryError(problems)
    raise UnsetVariableError("; ".join(dict.fromkeys(unset)))


def _cause(error: Any) -> Exception | None:
    cause = error.get("ctx", {}).get("error")
    return cause if isinstance(cause, Exception) else None


def _problems(model: type[Entry], error: Any) -> Iterator[tuple[str, str]]:
    """Yield each invalid key with its problem."""
    cause = _cause(error)
    if isinstance(cause, UnsetVariableError):
        return
    if isinstance(cause, EntryError):
        yield from cause.problems.items()
        return
    key, *within = [part for part in error["loc"] if part != "[key]"]
    path = ".".join(map(str, (key, *within)))
    wanted = "a string" if within else model.model_fields[str(key)].description
    yield path, f'"{path}" must be {wanted}'
