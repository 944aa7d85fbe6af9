"""REST: list grants, end one."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.changes import Change
from jupyter_agentbox.core.grant_json import grant_to_json
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.reviewers import reviewer_of

AUTH_RESOURCE: Final = "jupyter_agentbox:grants"


class GrantsHandler(AgentBoxHandler):
    """All grants."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the grants, most recent first."""
        grants = await self.services.grants.list()
        self.finish_json({"grants": [grant_to_json(grant) for grant in grants]})


class GrantHandler(AgentBoxHandler):
    """One grant."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def delete(self, grant_id: str) -> None:
        """End a grant. This requires the right to write grants and, on a Hub, to decide there."""
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        await self.services.grants.revoke(grant_id, reviewer=reviewer)
        await self.services.changes.note(Change.GRANT_REVOKED, {"grant": grant_id}, by=reviewer)
        self.set_status(204)
        self.finish()


_ID = r"(?P<grant_id>[A-Za-z0-9_-]+)"

default_handlers = [
    (r"/jupyter-agentbox/grants/?", GrantsHandler),
    (rf"/jupyter-agentbox/grants/{_ID}/?", GrantHandler),
]
