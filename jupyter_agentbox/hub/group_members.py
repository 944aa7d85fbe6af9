"""Who is in the groups of the Hub, as it tells this service."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import quote

from jupyterhub.services.auth import HubOAuth
from jupyterhub.utils import make_ssl_context
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPResponse

from jupyter_agentbox.core.text import one_line

#: The Hub scope that the service needs to read who is in a group.
GROUPS_SCOPE: Final = "read:groups"
#: Seconds to wait for the Hub's answer about one group.
_PATIENCE: Final = 10.0
#: How the Hub begins its message if there is no group of that name. With a scope for other groups, its message differs.
_NO_GROUP: Final = "No such group"


class GroupsUnreadableError(ValueError):
    """The Hub does not tell who is in a group. The message says why, and what to do."""


class GroupMembers(Protocol):
    """Knows who is in the groups of the Hub."""

    async def members_of(self, group: str) -> frozenset[str] | None:
        """Return the names of a group's members; ``None`` if there is no such group.

        Raises
        ------
        GroupsUnreadableError
        """


class HubGroupMembers:
    """Asks the Hub, with the service's own token (a `GroupMembers`).

    Parameters
    ----------
    hub_auth : HubOAuth
        The connection to the Hub.
    """

    def __init__(self, hub_auth: HubOAuth) -> None:
        self._hub_auth = hub_auth

    async def members_of(self, group: str) -> frozenset[str] | None:
        """Return the names of a group's members; ``None`` if there is no such group.

        Raises
        ------
        GroupsUnreadableError
            If the Hub cannot be reached, or the service lacks the scope.
        """
        answer = await self._ask(f"groups/{quote(group, safe='')}")
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        found = found if isinstance(found, dict) else {}
        if answer.code == HTTPStatus.NOT_FOUND and str(found.get("message", "")).startswith(_NO_GROUP):
            return None
        members = found.get("users")
        if answer.code == HTTPStatus.OK and isinstance(members, list):
            return frozenset(map(str, members))
        if answer.code in (HTTPStatus.OK, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise GroupsUnreadableError(
                f"this service may not read the group `{one_line(group)}`: grant it the Hub's scope `{GROUPS_SCOPE}`"
            )
        raise GroupsUnreadableError(f"the Hub answered HTTP {answer.code} to the question who is in a group")

    async def _ask(self, path: str) -> HTTPResponse:
        hub_auth = self._hub_auth
        options = {}
        try:
            if hub_auth.certfile or hub_auth.keyfile:
                certificates = hub_auth.keyfile, hub_auth.certfile
                options["ssl_options"] = make_ssl_context(*certificates, cafile=hub_auth.client_ca)
            return await AsyncHTTPClient().fetch(
                f"{hub_auth.api_url}/{path}",
                headers={"Authorization": f"token {hub_auth.api_token}"},
                raise_error=False,
                follow_redirects=False,
                connect_timeout=_PATIENCE,
                request_timeout=_PATIENCE,
                **options,
            )
        except (OSError, HTTPClientError, ValueError) as error:
            raise GroupsUnreadableError(f"the Hub cannot be reached: {one_line(str(error))}") from error
