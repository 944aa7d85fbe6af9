"""REST: MCP servers and their tools."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.changes import Change
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.core.tools import ServerStatus, ToolDescription
from jupyter_agentbox.exceptions import (
    InvalidRequestError,
    StorageError,
    UnknownApprovalError,
    UnknownServerError,
    UnknownToolError,
)
from jupyter_agentbox.services.approvals import handlers as approvals
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.kernel_connections.askers import asker_of
from jupyter_agentbox.services.reviewers import author_of, reviewer_of

AUTH_RESOURCE: Final = "jupyter_agentbox:servers"


#: Maximum length of a tool's description in a list, in characters.
_BRIEF: Final = 500


def tool_in_brief(tool: ToolDescription) -> JsonObject:
    """Return a tool without its schemas, and with its description shortened."""
    return {
        "name": tool.name,
        "title": tool.title[:_BRIEF],
        "description": tool.description[:_BRIEF],
        "annotations": tool.annotations,
        "digest": tool.digest,
    }


class ServersAPIHandler(AgentBoxHandler):
    """Base of the handlers of MCP servers."""

    auth_resource = AUTH_RESOURCE

    @property
    def catalog(self) -> ToolCatalog:
        """The servers."""
        return self.services.catalog

    def status_to_json(self, status: ServerStatus) -> JsonObject:
        """Return a server's status, with the reason why the last sign-in to it failed."""
        return {**status.to_json(), "sign_in_error": self.services.sign_ins.failure_of(status.name)}

    def status_of(self, name: str) -> ServerStatus:
        """Return a server's status.

        Raises
        ------
        UnknownServerError
            No server of that name is configured.
        """
        for status in self.catalog.servers():
            if status.name == name:
                return status
        raise UnknownServerError(f"no MCP server `{name}` is configured")


class ServersHandler(ServersAPIHandler):
    """All configured servers."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the servers and the configuration's problems."""
        self.finish_json(
            {
                "servers": [self.status_to_json(status) for status in self.catalog.servers()],
                "problems": [problem.to_json() for problem in self.catalog.problems()],
                "file": self._file_to_json(),
                "changed_tools": self._changed_tools(),
            }
        )

    def _changed_tools(self) -> JsonObject:
        """Return the number of new or changed tools of each server that has any."""
        counts = {
            status.name: len(self.services.seen_tools.marks(status.name, self.catalog.known_tools(status.name) or ()))
            for status in self.catalog.servers()
        }
        return {name: count for name, count in counts.items() if count}

    def _file_to_json(self) -> JsonObject:
        """Return the path of the user's file, and the path by which a page can open it, if it can."""
        path = self.services.servers_file.path
        root = Path(self.settings["server_root_dir"]).expanduser()
        inner = path.relative_to(root) if path.is_relative_to(root) and path.is_file() else None
        is_hidden = inner is not None and any(part.startswith(".") for part in inner.parts)
        may_open = not is_hidden or self.contents_manager.allow_hidden
        return {"path": str(path), "document": inner.as_posix() if inner is not None and may_open else None}


class ServerToolsHandler(ServersAPIHandler):
    """One server's tools."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """List the tools in brief, as last listed by the server, or return one of them in full. Starts no server."""
        known = self.catalog.known_tools(name)
        wanted = self.get_query_argument("tool", None, strip=False)
        if wanted is None:
            marks = self.services.seen_tools.marks(name, known or ())
            brief: list[JsonValue] = [{**tool_in_brief(tool), "mark": marks.get(tool.name)} for tool in known or ()]
            self.finish_json({"tools": None if known is None else brief})
            return
        for tool in known or ():
            if tool.name == wanted:
                self.finish_json({"tools": [{**tool.to_json(), "digest": tool.digest}]})
                return
        raise UnknownToolError(f"the server `{name}` has not listed a tool `{wanted:.200}`")

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """List the tools, starting the server if necessary; not a GET, which any page can trigger."""
        tools = await self.catalog.list_tools(name)
        self.finish_json({"tools": [tool.to_json() for tool in tools]})


class SeenToolsHandler(ServersAPIHandler):
    """Tools of one server that a person has looked at."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Mark tools as seen: they are no longer marked as new or changed."""
        digests = self.json_object()
        known = {tool.name for tool in self.catalog.known_tools(name) or ()}
        if not all(isinstance(digest, str) for digest in digests.values()) or digests.keys() - known:
            raise InvalidRequestError("the body must have the digest that was seen, by the name of each listed tool")
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        reviewer.check(self.services.decisions.decide_with)
        try:
            self.services.seen_tools.look(name, {tool: str(digest) for tool, digest in digests.items()})
        except OSError as error:
            raise StorageError(f"what was looked at could not be kept: {error.strerror}") from None
        self.set_status(204)
        self.finish()


class ServerStateHandler(ServersAPIHandler):
    """Base of the handlers that start and stop a server."""

    async def note(self, change: Change, name: str) -> None:
        """Record who did it. Whoever may use the server may, so nobody is asked what else they may do."""
        await self.services.changes.note(change, {"name": name}, by=await author_of(self))

    async def finish_status(self, status: ServerStatus) -> None:
        """Respond with the server's status, as far as the client may read it."""
        answer = self.status_to_json(status)
        may_read = await self.may_read(AUTH_RESOURCE)
        self.finish_json(answer if may_read else {"name": answer["name"], "state": answer["state"]})


class ServerStartHandler(ServerStateHandler):
    """Starts a server."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Start the server, unless it runs."""
        status = await self.catalog.start(name)
        await self.note(Change.SERVER_STARTED, name)
        await self.finish_status(status)


class ServerStopHandler(ServerStateHandler):
    """Stops a server."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Stop the server until its next use."""
        status = await self.catalog.stop(name)
        await self.note(Change.SERVER_STOPPED, name)
        await self.finish_status(status)


class ServerRestartHandler(ServerStateHandler):
    """Restarts a server."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Restart the server."""
        status = await self.catalog.restart(name)
        await self.note(Change.SERVER_RESTARTED, name)
        await self.finish_status(status)


class ServerLogHandler(ServersAPIHandler):
    """The log of a server."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Read the last lines of the server's log."""
        self.finish_json({"name": name, "log": list(self.status_of(name).log)})


class ServerCallsHandler(ServersAPIHandler):
    """Calls that people make in the panel to a server's tools."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Request approval of a call; return the approval request."""
        tool, arguments = _read_call(self.json_object())
        person = self.current_user.username
        askers = (await asker_of(self),)
        request = await self.services.manual_calls.begin(name, tool, arguments, person=person, askers=askers)
        self.set_status(202)
        may_read = await self.may_read(approvals.AUTH_RESOURCE)
        self.finish_json(request_to_json(request) if may_read else approvals.request_in_brief(request))


class ServerCallHandler(ServersAPIHandler):
    """A call made in the panel."""

    @web.authenticated
    @authorized
    async def get(self, name: str, request_id: str) -> None:
        """Return its outcome; both fields are null until it ends. The result outlives the server's entry."""
        end = self.services.manual_calls.result(request_id)
        if end is None:
            self.status_of(name)
        self.finish_json({"id": request_id, "known": end is not None, **(end or {"result": None, "error": None})})

    @web.authenticated
    @authorized
    async def delete(self, name: str, request_id: str) -> None:  # noqa: ARG002  # the id tells which
        """Withdraw or cut off the call."""
        if not await self.services.manual_calls.cancel(request_id):
            raise UnknownApprovalError(f"there is no unfinished call `{request_id}`", request_id=request_id)
        self.set_status(204)
        self.finish()


def _read_call(body: JsonObject) -> tuple[str, JsonObject]:
    tool, arguments = body.get("tool"), body.get("arguments", {})
    if not isinstance(tool, str) or not isinstance(arguments, dict) or body.keys() - {"tool", "arguments"}:
        raise InvalidRequestError('the body must have a "tool", and may have "arguments", a JSON object')
    return tool, arguments


class ServerTrustHandler(ServersAPIHandler):
    """Trust in a server of the project."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Request trust from a person; return the approval request."""
        request = await self.services.registrations.begin_review(name, askers=(await asker_of(self),))
        self.set_status(202)
        may_read = await self.may_read(approvals.AUTH_RESOURCE)
        self.finish_json(request_to_json(request) if may_read else approvals.request_in_brief(request))

    @web.authenticated
    @authorized
    async def delete(self, name: str) -> None:
        """Trust it no longer; if it runs, it is stopped."""
        by = await author_of(self)
        async with self.services.changes.by(by):
            self.services.registrations.distrust(name)
            self.catalog.servers()
        await self.services.changes.note(Change.SERVER_DISTRUSTED, {"name": name}, by=by)
        self.set_status(204)
        self.finish()


_NAME = r"(?P<name>[^/]+)"
_ID = r"(?P<request_id>[A-Za-z0-9_-]+)"

default_handlers = [
    (r"/jupyter-agentbox/servers/?", ServersHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/tools/?", ServerToolsHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/tools/seen/?", SeenToolsHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/start/?", ServerStartHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/stop/?", ServerStopHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/restart/?", ServerRestartHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/log/?", ServerLogHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/calls/?", ServerCallsHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/calls/{_ID}/?", ServerCallHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/trust/?", ServerTrustHandler),
]
