"""REST: the file of MCP servers, to which a person adds some, and those that other programs have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.exceptions import InvalidDecisionError
from jupyter_agentbox.mcp_client.other_programs import FoundServer, find_servers
from jupyter_agentbox.mcp_client.servers_file import ServersFile
from jupyter_agentbox.services.reviewers import reviewer_of

from .handlers import AUTH_RESOURCE, ServersAPIHandler


class ConfigurationHandler(ServersAPIHandler):
    """Base of the handlers of the file."""

    @property
    def file(self) -> ServersFile:
        """The file of the user's servers."""
        return self.services.servers_file


class ServerHandler(ConfigurationHandler):
    """One server of the file."""

    @web.authenticated
    @authorized
    async def put(self, name: str) -> None:
        """Add a server that a person has seen. It says what runs: whoever may decide may add one, and nobody else."""
        body = self.json_object()
        configuration, revision = body.get("configuration"), body.get("revision")
        if not isinstance(configuration, dict) or not isinstance(revision, str) or body.keys() - _FIELDS:
            raise InvalidDecisionError("the body must have a `configuration` as in mcp.json, and the file's `revision`")
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        reviewer.check(self.services.decisions.decide_with)
        async with self.services.changes.by(reviewer):
            await asyncio.to_thread(self.file.add, name, configuration, revision=revision)
            self.log.info("jupyter_agentbox: %s added the MCP server %s", reviewer.name, name)
            self.catalog.servers()  # reads the file again, and tells the pages
        self.set_status(201)
        self.finish_json({"name": name, "file": str(self.file.path)})


class ServerPreviewHandler(ConfigurationHandler):
    """What adding a server would write."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Check a new server and answer with the lines that would be written. It writes nothing and starts nothing."""
        body = self.json_object()
        configuration = body.get("configuration")
        if not isinstance(configuration, dict) or len(body) > 1:
            raise InvalidDecisionError("the body must have a `configuration` as in mcp.json, and nothing else")
        addition = await asyncio.to_thread(self.file.preview, name, configuration)
        self.finish_json(addition.to_json())


class OtherServersHandler(ConfigurationHandler):
    """The servers of other programs."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the servers that other programs have, as they could be added here, without any secret."""
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
