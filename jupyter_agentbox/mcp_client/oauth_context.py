"""What the SDK's OAuth client is given to work with, and what is kept of what it gives back.

A token is checked before it is kept or sent.
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
#: Seconds for which a token is believed to last at most: a year.
_LONGEST_LIFE: Final = 366 * 86_400


def _stay_silent(record: logging.LogRecord) -> bool:
    del record
    return False


# The SDK logs what it could not read, and that can be a token. What went wrong is told here, in words of our own.
for _name in ("mcp.client.auth.oauth2", "mcp.client.auth.utils"):
    logging.getLogger(_name).addFilter(_stay_silent)


class InMemoryTokenStorage:
    """What the SDK's client is given to begin with, and what it gives back: nothing is kept before all went well."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return none: a person signs in because there is none."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take what the provider gave, once it is checked: the SDK sends it next."""
        self.tokens = checked_token(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return as whom the provider knows this program."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take as whom the provider registered this program."""
        self.client = client_info


def context_of(server: HttpServer, sign_in: SignIn) -> OAuthContext:
    """Return what the SDK has to know to ask the provider of a sign-in again.

    Raises
    ------
    ValidationError
        If what was kept is malformed.
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
    """Return a token that can be sent, with a life that can be reckoned with.

    Raises
    ------
    OAuthTokenError
        If it is none: RFC 6750 has printable ASCII, and nothing else gets into a header whole.
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
    """Return what is kept of a token and of who gave it to whom."""
    return SignIn(
        trust_key=trust_key,
        tokens=dumped(token),
        expires_at=None if token.expires_in is None else time.time() + token.expires_in,
        client=client,
        provider=provider,
        resource=resource,
    )


def dumped(model: Any) -> JsonObject:
    """Return one of the SDK's models as JSON; empty for none."""
    return {} if model is None else cast(JsonObject, model.model_dump(mode="json", exclude_none=True))
