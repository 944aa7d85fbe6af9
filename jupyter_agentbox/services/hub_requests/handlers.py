"""REST: requests at the Hub service that wait for this server's user."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.reviewers import is_owner

#: The resource of decisions, because this is about requests.
AUTH_RESOURCE: Final = "jupyter_agentbox:approvals"


class HubRequestsHandler(AgentBoxHandler):
    """Requests waiting at the Hub service."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the requests, for this server's user only: no other user of the server may decide them there."""
        if not is_owner(self):
            raise web.HTTPError(403, "what waits at the Hub service is told to the user whose server this is only")
        self.finish_json((await self.services.hub_requests.list()).to_json())


default_handlers = [(r"/jupyter-agentbox/hub-requests/?", HubRequestsHandler)]
