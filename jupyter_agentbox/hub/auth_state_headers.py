"""``jupyter agentbox auth-state-headers``: prints headers with a token of a user's sign-in to JupyterHub."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request

from jupyter_agentbox.core.text import visible
from jupyter_agentbox.no_redirects import read_json

from .id_jag import exchange_id_token, read_exchange, read_secret

#: Seconds to wait for the Hub's answer. A `headersHelper` may take ten in all.
_PATIENCE: Final = 7
#: Maximum size of its answer, in bytes.
_MOST_BYTES: Final = 1024 * 1024
_NO_SCOPE: Final = "the token in --token-file needs the scope `admin:auth_state`"
_ADVICE: Final = {
    403: f"it does not know the token in --token-file, or {_NO_SCOPE}",
    404: f"it has no user `{{user}}`, or {_NO_SCOPE} for them",
}


def main(argv: Sequence[str]) -> int:
    """Print the headers, or say why there are none, and return the exit code."""
    options = _parser().parse_args(argv)
    try:
        token = _token_in(_auth_state(options), options.key, options.user)
        if options.id_jag is not None:
            token = exchange_id_token(token, read_exchange(options.id_jag), resource=_resource())
        if not _is_sendable(token):
            raise ValueError(f"the token of `{options.user}` has a character that no header may have")
    except (OSError, ValueError) as error:
        sys.stderr.write(visible(f"error: {error}\n"))
        return 1
    value = f"{options.scheme} {token}" if options.scheme else token
    sys.stdout.write(json.dumps({options.header: value}) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jupyter agentbox auth-state-headers",
        description="Print headers with a token of a user's sign-in to JupyterHub, for `headersHelper`.",
    )
    parser.add_argument("--user", metavar="NAME", required=True, help="whose token: --user=${HUB_USER}")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        required=True,
        help="a file with a token of the Hub that has the scope admin:auth_state",
    )
    parser.add_argument("--api-url", metavar="URL", required=True, help="the Hub's API: http://127.0.0.1:8081/hub/api")
    parser.add_argument(
        "--key",
        default="access_token",
        help="where the token is in the auth state, with dots between names (default: %(default)s)",
    )
    parser.add_argument("--header", default="Authorization", help="the name of the header (default: %(default)s)")
    parser.add_argument(
        "--scheme", default="Bearer", help="what stands before the token; empty for nothing (default: %(default)s)"
    )
    parser.add_argument(
        "--id-jag",
        metavar="FILE",
        type=Path,
        help="exchange the token, which is an ID token (--key=id_token), for one of the MCP server, as this file says",
    )
    return parser


def _resource() -> str:
    """Return the MCP server's address, which a `headersHelper` gets."""
    if not (url := os.environ.get("MCP_SERVER_URL")):
        raise ValueError("--id-jag needs the MCP server's address in the variable MCP_SERVER_URL")
    return url


def _auth_state(options: argparse.Namespace) -> Any:
    if urlsplit(options.api_url).scheme not in ("http", "https"):
        raise ValueError("--api-url must be an address such as http://127.0.0.1:8081/hub/api")
    token = read_secret(options.token_file)
    if not _is_sendable(token):
        raise ValueError(f"`{options.token_file}` must contain a token of the Hub and nothing else")
    url = f"{options.api_url.rstrip('/')}/users/{quote(options.user, safe='')}"
    request = Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310  # checked above
    try:
        model = read_json(request, timeout=_PATIENCE, most_bytes=_MOST_BYTES)
    except HTTPError as error:
        advice = _ADVICE.get(error.code, "").format(user=options.user)
        raise OSError(f"the Hub answered {error.code}{advice and f': {advice}'}") from None
    except URLError as error:
        raise OSError(f"the Hub cannot be reached: {error.reason}") from None
    except (ValueError, HTTPException):
        raise ValueError("the Hub did not answer with JSON, or --api-url is not its address") from None
    if not isinstance(model, dict) or "auth_state" not in model:
        raise ValueError(_NO_SCOPE)
    if model.get("name", options.user) != options.user:
        raise ValueError(f"the Hub answered about another user than `{options.user}`")
    return model["auth_state"]


def _is_sendable(token: str) -> bool:
    """Whether a token can be in a header. The error of `urllib` would quote one that cannot."""
    return token.isascii() and token.isprintable()


def _token_in(state: Any, key: str, user: str) -> str:
    """Return the token. Errors contain nothing of the auth state, which is secret."""
    if state is None:
        raise ValueError(
            f"the Hub has no auth state of `{user}`: set `Authenticator.enable_auth_state`, and have them sign in again"
        )
    for name in key.split("."):
        state = state.get(name) if isinstance(state, dict) else None
    if not isinstance(state, str) or not state:
        raise ValueError(f"the auth state of `{user}` has no text `{key}`: name the token with --key")
    return state
