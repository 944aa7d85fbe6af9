"""REST: what waits at the Hub service for the user whose server this is."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.reviewers import is_owner

#: That of decisions: it is about requests.
AUTH_RESOURCE: Final = "jupyter_agentbox:approvals"


class HubRequestsHandler(AgentBoxHandler):
    """What waits at the Hub service."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List it, for the user whose server this is: nobody else who may use the server is asked there."""
        if not is_owner(self):
            raise web.HTTPError(403, "what waits at the Hub service is told to the user whose server this is only")
        self.finish_json((await self.services.hub_requests.list()).to_json())


default_handlers = [(r"/jupyter-agentbox/hub-requests/?", HubRequestsHandler)]
