"""Requests to a provider: to refresh a sign-in's token, or to revoke it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from enum import Enum
from typing import Final

import httpx2
from mcp.client.auth import OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthToken
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import ValidationError

from jupyter_agentbox.exceptions import SignInError

from .configuration import HttpServer
from .oauth_context import checked_token, context_of, sign_in_of
from .provider_client import LONGEST_STEP, provider_client
from .sign_ins import SignIn

#: Timeout of a revocation at a sign-out, in seconds.
_LONGEST_GOODBYE: Final = 10.0
#: Errors of a provider for a token that it does not know, or no longer.
_UNKNOWN_TOKEN: Final = ("invalid_token", "invalid_grant")
#: Refusals that may come from a proxy before the provider, or may pass.
_PASSING: Final = (404, 408, 429)


class Revocation(Enum):
    """What became of the request to revoke a sign-in."""

    #: The provider has revoked it or does not know it, or it cannot be asked.
    DONE = "done"
    #: The provider, or what stands before it, refused. Another attempt would not help.
    REFUSED = "refused"
    #: There was no answer of the provider. Another attempt may help.
    UNANSWERED = "unanswered"


async def refresh(server: HttpServer, used: SignIn) -> SignIn | None:
    """Request a new token; return ``None`` if the provider says that the sign-in has ended.

    Raises
    ------
    httpx2.ConnectError
        If the provider does not respond. The request that needs the token is not sent.
    """
    try:
        async with asyncio.timeout(LONGEST_STEP):
            answer = await _ask_for_next(server, used)
        if answer.status_code >= 500 or answer.status_code == 429:
            raise httpx2.ConnectError(f"the sign-in could not be renewed: HTTP {answer.status_code}")
        if answer.status_code != 200:
            return None
        token = checked_token(OAuthToken.model_validate_json(answer.content))
        before = OAuthToken.model_validate(used.tokens)
    except (ValidationError, OAuthTokenError):
        return None
    except TimeoutError:
        raise httpx2.ConnectError("the sign-in could not be renewed: its provider took too long") from None
    except (httpx2.HTTPError, httpx2.StreamError, SignInError) as error:
        raise httpx2.ConnectError(f"the sign-in could not be renewed: {error}") from None
    token.scope = token.scope or before.scope
    token.refresh_token = token.refresh_token or before.refresh_token
    return sign_in_of(used.trust_key, token, used.client, used.provider, used.resource)


async def _ask_for_next(server: HttpServer, used: SignIn) -> httpx2.Response:
    context = context_of(server, used)
    data = {
        "grant_type": "refresh_token",
        "refresh_token": str(used.tokens["refresh_token"]),
        "client_id": str(used.client.get("client_id", "")),
    }
    if context.should_include_resource_param(LATEST_PROTOCOL_VERSION):
        data["resource"] = context.get_resource_url()
    data, headers = context.prepare_token_auth(data, {"Accept": "application/json"})
    async with provider_client(server) as client:
        return await client.post(_token_endpoint(server, context), data=data, headers=headers)


def _token_endpoint(server: HttpServer, context: OAuthContext) -> str:
    if context.oauth_metadata is not None:
        return str(context.oauth_metadata.token_endpoint)
    return f"{context.get_authorization_base_url(server.url)}/token"


async def revoke(server: HttpServer, found: SignIn) -> Revocation:
    """Ask the provider to revoke a sign-in that is no longer used here, if it supports that.

    A provider that does not respond soon is not waited for.
    """
    with contextlib.suppress(httpx2.HTTPError, httpx2.StreamError, SignInError, OAuthTokenError, ValidationError):
        context = context_of(server, found)
        endpoint = context.oauth_metadata.revocation_endpoint if context.oauth_metadata is not None else None
        kind = "refresh_token" if found.tokens.get("refresh_token") else "access_token"
        if endpoint is None or not found.tokens.get(kind):
            return Revocation.DONE
        data = {
            "token": str(found.tokens[kind]),
            "token_type_hint": kind,
            "client_id": str(found.client.get("client_id", "")),
        }
        data, headers = context.prepare_token_auth(data, {})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_GOODBYE), provider_client(server) as client:
                answer = await client.post(str(endpoint), data=data, headers=headers)
                return _outcome(answer)
    return Revocation.UNANSWERED


def _outcome(answer: httpx2.Response) -> Revocation:
    status = answer.status_code
    if status in (200, 204) or (status == 400 and _error_in(answer) in _UNKNOWN_TOKEN):
        return Revocation.DONE
    return Revocation.REFUSED if 400 <= status < 500 and status not in _PASSING else Revocation.UNANSWERED


def _error_in(answer: httpx2.Response) -> object:
    """Return the error that a provider's answer names; ``None`` if it names none."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(answer.content)
        return found.get("error") if isinstance(found, dict) else None
    return None
