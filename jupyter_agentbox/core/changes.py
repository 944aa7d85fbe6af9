"""Changes of rules, servers and grants, recorded as calls of this server.

So they are found, exported, sent to audit sinks and verified like all others. They never need approval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final

from .approvals import Answer, ApprovalRequest, Decision, Outcome, OutcomeState, Status
from .calls import JsonObject, ToolCall
from .policy import Effect, Evaluation
from .registration import OWN_SERVER
from .reviewers import Reviewer
from .tools import ToolDescription


class Change(str, Enum):
    """The kind of change; its value is the tool name in the record."""

    RULES = "change_rules"
    SITE_RULES = "change_site_rules"
    SERVER_ADDED = "add_server"
    SERVER_CHANGED = "change_server"
    SERVER_REMOVED = "remove_server"
    SERVER_DISTRUSTED = "distrust_server"
    SERVER_STARTED = "start_server"
    SERVER_STOPPED = "stop_server"
    SERVER_RESTARTED = "restart_server"
    SIGNED_IN = "sign_in"
    SIGNED_OUT = "sign_out"
    GRANT_REVOKED = "revoke_grant"


_TITLES: Final = {
    Change.RULES: "Change the user's rules",
    Change.SITE_RULES: "Change the site's rules",
    Change.SERVER_ADDED: "Add an MCP server",
    Change.SERVER_CHANGED: "Change an MCP server",
    Change.SERVER_REMOVED: "Remove an MCP server",
    Change.SERVER_DISTRUSTED: "Stop trusting an MCP server",
    Change.SERVER_STARTED: "Start an MCP server",
    Change.SERVER_STOPPED: "Stop an MCP server",
    Change.SERVER_RESTARTED: "Restart an MCP server",
    Change.SIGNED_IN: "Sign in to an MCP server",
    Change.SIGNED_OUT: "Sign out of an MCP server",
    Change.GRANT_REVOKED: "End a lasting answer",
}

#: The reviewer of a change that was made in a file, not over the REST API.
WHOEVER: Final = Reviewer(name="unknown", display_name="whoever can write the file")


def is_change(call: ToolCall) -> bool:
    """Whether a call represents a change, to which no rule applies."""
    return call.server == OWN_SERVER and call.tool in [change.value for change in Change]


def change_record(change: Change, about: JsonObject, *, by: Reviewer, at: datetime, id: str) -> ApprovalRequest:
    """Return the record of a change.

    Parameters
    ----------
    change : Change
        The kind of change.
    about : JSON object
        Names and digests, without secrets.
    by : Reviewer
        Who made the change.
    at : datetime
        When it was made.
    id : str
        The record's id.
    """
    call = ToolCall(server=OWN_SERVER, tool=change.value, arguments=about)
    return ApprovalRequest(
        id=id,
        call=call,
        tool=ToolDescription(name=change.value, title=_TITLES[change]),
        evaluation=Evaluation(effect=Effect.ASK),
        created_at=at,
        status=Status.APPROVED,
        decision=Decision(answer=Answer.ALLOW_ONCE, digest=call.digest, reviewer=by, decided_at=at),
        outcome=Outcome(state=OutcomeState.SUCCEEDED, started_at=at, finished_at=at),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state that is watched for changes.

    Parameters
    ----------
    rules_file : str
        The user's rules file; empty if there is none.
    rules, site_rules : str
        Digests of the user's and the site's rules; empty if there are none.
    servers : mapping
        MCP server names, with hashes of their commands or addresses.
    """

    rules_file: str = ""
    rules: str = ""
    site_rules: str = ""
    servers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def changes_since(self, before: Facts) -> Iterator[tuple[Change, JsonObject]]:
        """Yield the changes since then, with names and digests."""
        if self.rules != before.rules:
            yield Change.RULES, {"file": self.rules_file, **_from_to(before.rules, self.rules)}
        if self.site_rules != before.site_rules:
            yield Change.SITE_RULES, _from_to(before.site_rules, self.site_rules)
        for name in sorted(self.servers.keys() | before.servers.keys()):
            old, new = before.servers.get(name), self.servers.get(name)
            if old is None:
                yield Change.SERVER_ADDED, {"name": name, **_from_to("", new or "")}
            elif new is None:
                yield Change.SERVER_REMOVED, {"name": name, **_from_to(old, "")}
            elif old != new:
                yield Change.SERVER_CHANGED, {"name": name, **_from_to(old, new)}


def _from_to(before: str, after: str) -> JsonObject:
    return {"from": before or None, "to": after or None}
