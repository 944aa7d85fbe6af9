"""Exchanges a user's ID token for a token of an MCP server, without a sign-in there (ID-JAG).

The user's identity provider gives a signed assertion about the user for the MCP server's authorization server (RFC
8693), which takes it in place of a sign-in (RFC 7523). Users see nothing of it, and the first provider's administrators
decide who may use which MCP server. See `draft-ietf-oauth-identity-assertion-authz-grant`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from jupyter_agentbox.mcp_client.provider_addresses import is_safe_address
from jupyter_agentbox.no_redirects import read_json

#: Seconds to wait for each answer: a `headersHelper` may take ten in all.
_PATIENCE: Final = 3
#: Maximum size of an answer, in bytes.
_MOST_BYTES: Final = 256 * 1024
_TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  # a name
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105  # a name
_ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"


def _safe(url: str) -> str:
    if not is_safe_address(url):
        raise ValueError("must begin with https")
    return url


_Url = Annotated[str, AfterValidator(_safe)]


class Party(BaseModel):
    """A provider, and this service as its client.

    Attributes
    ----------
    issuer : str
        The provider's issuer identifier.
    token_endpoint : str or None
        Where it gives tokens; ``None`` to read that in its metadata.
    client_id : str
        The name of this service there.
    client_secret_file : Path
        A file with the client secret.
    authentication : str
        How the secret is sent.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: _Url
    token_endpoint: _Url | None = None
    client_id: str
    client_secret_file: Path
    authentication: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"


class Exchange(BaseModel):
    """What a token is exchanged for.

    Attributes
    ----------
    identity_provider : Party
        The one that the Hub's users sign in to.
    authorization_server : Party
        The one that gives the MCP server's tokens.
    scopes : tuple of str
        What the token should permit; the authorization server's default if empty.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    identity_provider: Party
    authorization_server: Party
    scopes: tuple[str, ...] = ()


def read_exchange(path: Path) -> Exchange:
    """Read the file that says what a token is exchanged for.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is invalid.
    """
    try:
        return Exchange.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"`{path}`: {f'`{place}`: ' if place else ''}{problem['msg']}") from None


def read_secret(path: Path) -> str:
    """Return the secret in a file.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is empty.
    """
    secret = path.read_text("utf-8").strip()
    if not secret:
        raise ValueError(f"`{path}` is empty")
    return secret


def exchange_id_token(id_token: str, exchange: Exchange, *, resource: str) -> str:
    """Return an access token of an MCP server for the user of an ID token.

    Parameters
    ----------
    id_token : str
        The user's ID token.
    exchange : Exchange
        The two providers.
    resource : str
        The MCP server's address.

    Raises
    ------
    OSError
        If a provider refuses, or cannot be reached.
    ValueError
        If an answer is malformed.
    """
    provider, server = exchange.identity_provider, exchange.authorization_server
    scope = {"scope": " ".join(exchange.scopes)} if exchange.scopes else {}
    asked = {
        "grant_type": _TOKEN_EXCHANGE,
        "requested_token_type": _ID_JAG,
        "audience": server.issuer,
        "resource": resource,
        "subject_token": id_token,
        "subject_token_type": _ID_TOKEN,
        **scope,
    }
    answer = _ask_for_token(provider, asked)
    if answer.get("issued_token_type") != _ID_JAG:
        raise ValueError(f"{provider.issuer} gave a token of another type than was asked for")
    assertion = {"grant_type": _JWT_BEARER, "assertion": _token_in(answer, provider), "resource": resource, **scope}
    return _token_in(_ask_for_token(server, assertion), server)


def _token_in(answer: Mapping[str, Any], party: Party) -> str:
    token = answer.get("access_token")
    if not isinstance(token, str) or not token:
        raise ValueError(f"{party.issuer} gave no token")
    return token


def _ask_for_token(party: Party, form: Mapping[str, str]) -> Mapping[str, Any]:
    secret = read_secret(party.client_secret_file)
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    if party.authentication == "client_secret_basic":
        pair = f"{quote(party.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form = {**form, "client_id": party.client_id, "client_secret": secret}
    request = Request(_endpoint(party), data=urlencode(form).encode(), headers=headers)  # noqa: S310  # checked
    return _answer(request, party)


def _endpoint(party: Party) -> str:
    """Return where a provider gives tokens. Its metadata cannot lead to another host, which would get the secret."""
    if party.token_endpoint is not None:
        return party.token_endpoint
    parts = urlsplit(party.issuer)
    path = parts.path.rstrip("/")
    places = (f"/.well-known/oauth-authorization-server{path}", f"{path}/.well-known/openid-configuration")
    for place in places:
        try:
            found = _answer(Request(parts._replace(path=place).geturl()), party)  # noqa: S310  # the issuer is checked
        except (OSError, ValueError):  # some answer with a page for any address
            continue
        endpoint = found.get("token_endpoint")
        if found.get("issuer") != party.issuer or not isinstance(endpoint, str):
            raise ValueError(f"the metadata of {party.issuer} is not its own, or names no `token_endpoint`")
        if _origin(endpoint) != _origin(party.issuer):
            raise ValueError(f"{party.issuer} gives tokens at another host: name the `token_endpoint` in the file")
        return endpoint
    raise OSError(f"{party.issuer} has no metadata: name its `token_endpoint` in the file")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _answer(request: Request, party: Party) -> Mapping[str, Any]:
    """Return a provider's answer. Errors contain only its error code: descriptions may quote what was sent."""
    try:
        found = read_json(request, timeout=_PATIENCE, most_bytes=_MOST_BYTES)
    except HTTPError as error:
        raise OSError(f"{party.issuer} answered {error.code}{_error_code(error)}") from None
    except URLError as error:
        raise OSError(f"{party.issuer} cannot be reached: {error.reason}") from None
    except (ValueError, HTTPException):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{party.issuer} did not answer with a JSON object")
    return found


def _error_code(error: HTTPError) -> str:
    """Return the error code of OAuth in an answer, such as ``invalid_grant``."""
    try:
        code = json.loads(error.read(_MOST_BYTES))["error"]
    except (ValueError, LookupError, TypeError, OSError, RecursionError, HTTPException):
        return ""
    return f" ({code})" if isinstance(code, str) and code.replace("_", "").isalpha() and len(code) < 40 else ""
