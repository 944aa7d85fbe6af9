"""REST: the user's MCP configuration file, and servers of other programs that can be added to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.exceptions import InvalidRequestError
from jupyter_agentbox.mcp_client.other_programs import FoundServer, find_servers
from jupyter_agentbox.mcp_client.servers_file import ServersFile
from jupyter_agentbox.services.reviewers import reviewer_of

from .handlers import AUTH_RESOURCE, ServersAPIHandler


class ConfigurationHandler(ServersAPIHandler):
    """Base of the handlers of the file."""

    @property
    def file(self) -> ServersFile:
        """The user's MCP configuration file."""
        return self.services.servers_file


class ServerHandler(ConfigurationHandler):
    """One server of the file."""

    @web.authenticated
    @authorized
    async def put(self, name: str) -> None:
        """Add a server shown to a person. It determines what runs, so only those who may decide may add one."""
        body = self.json_object()
        configuration, revision = body.get("configuration"), body.get("revision")
        if not isinstance(configuration, dict) or not isinstance(revision, str) or body.keys() - _FIELDS:
            raise InvalidRequestError("the body must have a `configuration` as in mcp.json, and the file's `revision`")
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        reviewer.check(self.services.decisions.decide_with)
        async with self.services.changes.by(reviewer):
            self.catalog.servers()  # reads the file again here: in a thread, no server could be stopped
            await asyncio.to_thread(self.file.add, name, configuration, revision=revision)
            self.log.info("jupyter_agentbox: %s added the MCP server %s", reviewer.name, name)
            self.catalog.servers()  # reads the file again, and notifies pages
        self.set_status(201)
        self.finish_json({"name": name, "file": str(self.file.path)})


class ServerPreviewHandler(ConfigurationHandler):
    """Preview of adding a server."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Validate a new server and return the lines that would be written. Writes and starts nothing."""
        body = self.json_object()
        configuration = body.get("configuration")
        if not isinstance(configuration, dict) or len(body) > 1:
            raise InvalidRequestError("the body must have a `configuration` as in mcp.json, and nothing else")
        self.catalog.servers()  # as above
        addition = await asyncio.to_thread(self.file.preview, name, configuration)
        self.finish_json(addition.to_json())


class OtherServersHandler(ConfigurationHandler):
    """Servers of other programs."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List other programs' servers, in a form in which they can be added here, without secrets."""
        found = await asyncio.to_thread(_find, self.settings["server_root_dir"])
        known = {status.name for status in self.catalog.servers()}
        listed: list[JsonValue] = [{**server.to_json(), "is_known": server.name in known} for server in found]
        self.finish_json({"servers": listed})


def _find(root: str) -> list[FoundServer]:
    return find_servers(project=Path(root).expanduser(), home=Path.home())


_FIELDS: Final = frozenset({"configuration", "revision"})
_NAME: Final = r"(?P<name>[^/]+)"

default_handlers = [
    (rf"/jupyter-agentbox/servers/{_NAME}/?", ServerHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/preview/?", ServerPreviewHandler),
    (r"/jupyter-agentbox/other-servers/?", OtherServersHandler),
]
