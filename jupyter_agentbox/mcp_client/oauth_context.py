"""State passed to the SDK's OAuth client, and the part of its results that is stored.

Tokens are validated before they are stored or sent.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final, cast

from mcp.client.auth import OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from jupyter_agentbox.core.calls import JsonObject

from .configuration import HttpServer
from .sign_ins import SignIn

_LONGEST_TOKEN: Final = 32_000
#: Maximum credible lifetime of a token, in seconds: a year.
_LONGEST_LIFE: Final = 366 * 86_400


def _stay_silent(record: logging.LogRecord) -> bool:
    del record
    return False


# The SDK logs what it cannot parse, which may be a token. We report the error in our own words instead.
for _name in ("mcp.client.auth.oauth2", "mcp.client.auth.utils"):
    logging.getLogger(_name).addFilter(_stay_silent)


class InMemoryTokenStorage:
    """In-memory storage for the SDK's client, so that nothing is persisted before the sign-in succeeds."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return ``None``: a person signs in because there are no tokens."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the provider's tokens after validation, because the SDK sends them next."""
        self.tokens = checked_token(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return this program's registration at the provider."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store this program's new registration at the provider."""
        self.client = client_info


def context_of(server: HttpServer, sign_in: SignIn) -> OAuthContext:
    """Return the SDK's context for further requests to a sign-in's provider.

    Raises
    ------
    ValidationError
        If the stored data is malformed.
    """
    context = OAuthContext(
        server_url=server.url,
        client_metadata=OAuthClientMetadata(redirect_uris=None),
        storage=InMemoryTokenStorage(None),
        redirect_handler=None,
        callback_handler=None,
    )
    context.client_info = OAuthClientInformationFull.model_validate(sign_in.client)
    context.oauth_metadata = OAuthMetadata.model_validate(sign_in.provider) if sign_in.provider else None
    if sign_in.resource:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(sign_in.resource)
    return context


def checked_token(token: OAuthToken) -> OAuthToken:
    """Return a token, checked to be sendable and with a plausible lifetime.

    Raises
    ------
    OAuthTokenError
        If it is invalid: RFC 6750 requires printable ASCII, and nothing else is safe in a header.
    """
    for value in (token.access_token, token.refresh_token or "none"):
        if not 0 < len(value) <= _LONGEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
            raise OAuthTokenError("the provider gave a token that cannot be sent")
    if token.expires_in is not None:
        token.expires_in = min(max(token.expires_in, 0), _LONGEST_LIFE)
    return token


def sign_in_of(
    trust_key: str, token: OAuthToken, client: JsonObject, provider: JsonObject | None, resource: JsonObject | None
) -> SignIn:
    """Return the sign-in to store for a token."""
    return SignIn(
        trust_key=trust_key,
        tokens=dumped(token),
        expires_at=None if token.expires_in is None else time.time() + token.expires_in,
        client=client,
        provider=provider,
        resource=resource,
    )


def dumped(model: Any) -> JsonObject:
    """Return an SDK model as JSON; empty for ``None``."""
    return {} if model is None else cast(JsonObject, model.model_dump(mode="json", exclude_none=True))
