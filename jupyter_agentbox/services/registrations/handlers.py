"""REST: registrations, with which programs ask to add an MCP server."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.calls import JsonObject, Origin
from jupyter_agentbox.exceptions import InvalidRequestError
from jupyter_agentbox.services.approvals import handlers as approvals
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.kernel_connections.askers import asker_of

AUTH_RESOURCE: Final = "jupyter_agentbox:servers"
_FIELDS: Final = frozenset({"name", "configuration", "kernel_id"})


class RegistrationsHandler(AgentBoxHandler):
    """All registrations."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Request approval to add a server; return the approval request."""
        body = self.json_object()
        name, configuration = _read(body)
        request = await self.services.registrations.begin(name, configuration, await self._origin(body))
        self.set_status(202)
        may_read = await self.may_read(approvals.AUTH_RESOURCE)
        self.finish_json(request_to_json(request) if may_read else approvals.request_in_brief(request))

    async def _origin(self, body: JsonObject) -> Origin:
        askers = (await asker_of(self),)
        kernel_id = body.get("kernel_id")
        if kernel_id is None:
            return Origin(askers=askers)
        level = self.services.isolation.level_of(kernel_id) if isinstance(kernel_id, str) else None
        if level is None:
            raise InvalidRequestError("`kernel_id` is not a kernel of this server, or its isolation level is unknown")
        own = self.services.isolation.has_own_settings(str(kernel_id))
        return Origin(kernel_id=str(kernel_id), isolation=level, has_own_settings=own, askers=askers)


class RegistrationHandler(AgentBoxHandler):
    """One registration."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def delete(self, request_id: str) -> None:
        """Withdraw the registration."""
        await self.services.registrations.withdraw(request_id)
        self.set_status(204)
        self.finish()


def _read(body: JsonObject) -> tuple[str, JsonObject]:
    name, configuration = body.get("name"), body.get("configuration")
    if not isinstance(name, str) or not isinstance(configuration, dict) or body.keys() - _FIELDS:
        raise InvalidRequestError(
            'the body must have a "name", a "configuration" as in mcp.json, and may have a "kernel_id"'
        )
    return name, configuration


_ID: Final = r"(?P<request_id>[A-Za-z0-9_-]+)"

default_handlers = [
    (r"/jupyter-agentbox/registrations/?", RegistrationsHandler),
    (rf"/jupyter-agentbox/registrations/{_ID}/?", RegistrationHandler),
]
