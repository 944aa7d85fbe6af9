"""REST: health, that is, whether calls can run here."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.services.handlers import AgentBoxHandler

AUTH_RESOURCE: Final = "jupyter_agentbox:servers"


class HealthHandler(AgentBoxHandler):
    """The health of this server."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Return 200 if calls can run, else 503, with the problems. Contains no data of users' calls."""
        report = await self.services.health.report()
        self.set_status(200 if report["is_healthy"] else 503)
        self.finish_json(report)


default_handlers = [(r"/jupyter-agentbox/health/?", HealthHandler)]
