"""REST API of legal holds. Setting and releasing one needs a scope of its own and a reason, and both are recorded."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from tornado import web

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.times import time_from_json

from .handlers import JsonHandler

#: The largest number of characters in a reason.
_LONGEST: Final = 4000
_KEYS: Final = frozenset({"user", "since", "until", "reason"})


class HoldsHandler(JsonHandler):
    """Lists holds and sets them."""

    asks_anew = True

    async def get(self) -> None:
        """List all holds, released ones too, newest first."""
        if not self.caller.may_hold:
            self.check_may_read_record()
        self.finish_json({"holds": [hold.to_json() for hold in await self.parts.reports.holds()]})

    async def post(self) -> None:
        """Set a hold in the caller's name."""
        self.check_may_hold()
        given = self.json_object()
        if set(given) - _KEYS:
            raise web.HTTPError(422, f"a hold can have only these keys: {', '.join(sorted(_KEYS))}")
        since, until = time_of(given, "since"), time_of(given, "until")
        if since is not None and until is not None and until <= since:
            raise web.HTTPError(422, "`until` must be after `since`")
        user = given.get("user")
        if "user" not in given or not (user is None or (isinstance(user, str) and user)):
            raise web.HTTPError(422, "`user` must be the name of a user, or null for all users")
        hold = await self.parts.reports.hold(
            str(user or ""), since=since, until=until, reason=reason_of(given), by=self.caller.name
        )
        self.set_status(201)
        self.finish_json(hold.to_json())


class HoldReleaseHandler(JsonHandler):
    """Releases a hold."""

    async def post(self, request_id: str) -> None:
        """Release the hold in the caller's name."""
        self.check_may_hold()
        given = self.json_object()
        if set(given) - {"reason"}:
            raise web.HTTPError(422, "a release can have only the key `reason`")
        hold = await self.parts.reports.release(request_id, reason=reason_of(given), by=self.caller.name)
        if hold is None:
            raise web.HTTPError(404, "there is no such hold, or it has been released already")
        self.finish_json(hold.to_json())


def reason_of(given: JsonObject) -> str:
    """Return the reason given in a body."""
    reason: Any = given.get("reason")
    if not isinstance(reason, str) or not reason.strip() or len(reason) > _LONGEST:
        raise web.HTTPError(422, f"`reason` must be a text that says why, of at most {_LONGEST} characters")
    return reason.strip()


def time_of(given: JsonObject, name: str) -> datetime | None:
    """Return a time given in a body; ``None`` if it is missing."""
    value: Any = given.get(name)
    if value is None:
        return None
    found = time_from_json(value)
    if found is None or found.timestamp() < 0:
        raise web.HTTPError(422, f"`{name}` must be a time such as 2026-05-01T00:00:00Z")
    return found
