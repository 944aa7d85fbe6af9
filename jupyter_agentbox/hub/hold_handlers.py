"""REST of legal holds: set and ended by who has the scope for it, each in the record, with who did it and why."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from tornado import web

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.times import time_from_json

from .handlers import JsonHandler

#: Characters of a reason.
_LONGEST: Final = 4000
_KEYS: Final = frozenset({"user", "since", "until", "reason"})


class HoldsHandler(JsonHandler):
    """All holds."""

    asks_anew = True

    async def get(self) -> None:
        """List them, also those that were released, the newest first."""
        if not self.caller.may_hold:
            self.check_auditor()
        self.finish_json({"holds": [hold.to_json() for hold in await self.parts.reports.holds()]})

    async def post(self) -> None:
        """Set a hold, in the name of who asks."""
        self.check_may_hold()
        given = self.json_object()
        if set(given) - _KEYS:
            raise web.HTTPError(422, f"a hold has only {', '.join(sorted(_KEYS))}")
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
    """The end of a hold."""

    async def post(self, request_id: str) -> None:
        """End it, in the name of who asks."""
        self.check_may_hold()
        given = self.json_object()
        if set(given) - {"reason"}:
            raise web.HTTPError(422, "a release has only `reason`")
        hold = await self.parts.reports.release(request_id, reason=reason_of(given), by=self.caller.name)
        if hold is None:
            raise web.HTTPError(404, "there is no such hold, or it was released")
        self.finish_json(hold.to_json())


def reason_of(given: JsonObject) -> str:
    """Return the reason in a body."""
    reason: Any = given.get("reason")
    if not isinstance(reason, str) or not reason.strip() or len(reason) > _LONGEST:
        raise web.HTTPError(422, f"`reason` must say why, in at most {_LONGEST} characters")
    return reason.strip()


def time_of(given: JsonObject, name: str) -> datetime | None:
    """Return a time in a body; ``None`` if it has none."""
    value: Any = given.get(name)
    if value is None:
        return None
    found = time_from_json(value)
    if found is None or found.timestamp() < 0:
        raise web.HTTPError(422, f"`{name}` must be a time such as 2026-05-01T00:00:00Z")
    return found
