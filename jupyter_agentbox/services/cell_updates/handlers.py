"""REST: a cell's code with the arguments that a person edited."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.analysis.edited_call import LONGEST, NotUpdatableError
from jupyter_agentbox.exceptions import InvalidRequestError
from jupyter_agentbox.services.handlers import AgentBoxHandler

AUTH_RESOURCE: Final = "jupyter_agentbox:approvals"


class CellUpdateHandler(AgentBoxHandler):
    """The code of the cell that made a call."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized(action="read", resource=AUTH_RESOURCE)  # type: ignore[untyped-decorator]  # Jupyter gives it no types
    async def post(self, request_id: str) -> None:
        """Return the updated code, or why there is none. Changes nothing; requires the right to read requests."""
        body = self.json_object()
        source = body.get("source")
        if body.keys() != {"source"} or not isinstance(source, str):
            raise InvalidRequestError('the body must be `{"source": "the code of the cell"}`')
        if len(source) > LONGEST:
            raise InvalidRequestError(f"`source` may have {LONGEST:,} characters at most")
        try:
            source.encode()
        except UnicodeEncodeError:
            raise InvalidRequestError("`source` holds characters that cannot be stored in a file") from None
        try:
            self.finish_json({"source": await self.services.cell_updates.update(request_id, source), "reason": None})
        except NotUpdatableError as error:
            self.finish_json({"source": None, "reason": str(error)})


default_handlers = [
    (r"/jupyter-agentbox/approvals/(?P<request_id>[A-Za-z0-9_-]+)/cell-update/?", CellUpdateHandler),
]
