"""Grants: a person's lasting answers, the calls that they cover, and when they become void."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from jupyter_agentbox.exceptions import InvalidDecisionError

from .calls import ToolCall, canonical_json
from .grant_uses import GrantUse, Scope, Void, VoidGrant
from .policy import Effect, Evaluation, GrantLimit
from .registration import OWN_SERVER, REGISTER_TOOL
from .reviewers import Reviewer
from .risks import Risk, risk_of
from .tools import ToolDescription

#: Name of the server that runs code. Its tool descriptions contain the findings in the code.
NOTEBOOK: Final = "notebook"
#: Tools that cannot be granted: they decide which tools there are, and who approves them.
NEVER_GRANTED: Final = frozenset({(OWN_SERVER, REGISTER_TOOL), (NOTEBOOK, "set_approval_mode")})
#: Maximum number of calls of a grant.
MOST_USES: Final = 1_000_000


def only_reads(tool: ToolDescription) -> bool:
    """Whether the server declares a tool read-only and not destructive."""
    return risk_of(tool.annotations) is Risk.READ_ONLY


def arguments_digest(call: ToolCall) -> str:
    """Return the SHA-256 of a call's arguments, in lower-case hex, regardless of its origin."""
    return hashlib.sha256(canonical_json(dict(call.arguments)).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTerms:
    """The terms of a grant that a person requests.

    Parameters
    ----------
    scope : Scope
        The calls that it covers.
    until : datetime or None
        Expiry time, with time zone; ``None`` for none.
    uses : int or None
        Maximum number of calls, including the first; ``None`` for no limit.
    """

    scope: Scope = Scope.KERNEL
    until: datetime | None = None
    uses: int | None = None

    def check(
        self,
        call: ToolCall,
        tool: ToolDescription,
        effect: Effect,
        *,
        now: datetime,
        limit: GrantLimit = GrantLimit.ANY,
    ) -> None:
        """Check that a grant on these terms can be given with an answer to this call.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription
            Its tool.
        effect : Effect
            ``allow`` or ``deny``.
        now : datetime
            The current time.
        limit : GrantLimit
            Which grants can allow the call.

        Raises
        ------
        InvalidDecisionError
        """
        problem = self._problem(call, tool, effect, now)
        if not problem and effect is Effect.ALLOW and limit is GrantLimit.KERNEL and self.scope is Scope.USER:
            problem = "a rule of the site lets such a call be allowed for one kernel only, not with the scope `user`"
        if problem:
            raise InvalidDecisionError(f"`grant`: {problem}")

    def _problem(self, call: ToolCall, tool: ToolDescription, effect: Effect, now: datetime) -> str:
        if effect is Effect.ALLOW and (call.server, call.tool) in NEVER_GRANTED:
            return f"`{call.qualified_name}` is asked about each time"
        if self.until is not None and self.until <= now:
            return "`until` is over"
        if self.uses is not None and not 1 <= self.uses <= MOST_USES:
            return f"`uses` must be a number from 1 to {MOST_USES}"
        if self.scope is Scope.USER and self.until is None and self.uses is None:
            return "the scope `user` needs `until` or `uses`: write a rule for what is to hold for ever"
        if self.scope is not Scope.USER and call.origin.kernel_id is None:
            return f"the scope `{self.scope.value}` is for a kernel, and no kernel made this call"
        if self.scope is Scope.THREAD and call.origin.thread_id is None:
            return "the scope `thread` is for an agent's thread, and none made this call"
        if self.scope is Scope.SERVER_READ_ONLY:
            if effect is not Effect.ALLOW:
                return "the scope `server-read-only` is for allowing only"
            if not only_reads(tool):
                return f"the server does not say of `{call.qualified_name}` that it only reads"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person's lasting answer.

    Parameters
    ----------
    id : str
        A unique, unguessable id.
    effect : Effect
        ``allow`` or ``deny``.
    scope : Scope
        The calls that it covers.
    server, tool : str
        The exact names in the call for which it was given.
    granter : Reviewer
        Who gave it.
    granted_at : datetime
        Time of the grant, with time zone.
    request_id : str
        The request for which it was given.
    kernel_id : str or None
        The kernel that it covers; ``None`` for all.
    notebook_path : str or None
        The notebook of the call for which it was given, for people.
    thread_id : str or None
        The agent's thread that it covers; ``None`` for all, and for code outside threads.
    arguments : str
        Digest of the only arguments that it covers; empty for all.
    trust_key : str
        Trust key of the server's command or address; empty for tools of this package.
    server_entry : str
        What the trust key covers, for people: a line each, without secrets. Empty if unknown.
    definitions : mapping
        The digests of the descriptions of the tools that it allows, by tool name; empty to cover a tool whatever its
        description.
    seen : ToolDescription or None
        The tool as shown to the person.
    until : datetime or None
        Expiry time.
    uses : int or None
        Maximum number of calls.
    reason : str
        The granter's reason.
    used : int
        Number of calls answered so far.
    last_used_at : datetime or None
        When it last answered a call.
    void : Void or None
        Why it is void; ``None`` if it is not.
    """

    id: str
    effect: Effect
    scope: Scope
    server: str
    tool: str
    granter: Reviewer
    granted_at: datetime
    request_id: str
    kernel_id: str | None = None
    notebook_path: str | None = None
    thread_id: str | None = None
    arguments: str = ""
    trust_key: str = ""
    server_entry: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    seen: ToolDescription | None = None
    until: datetime | None = None
    uses: int | None = None
    reason: str = ""
    used: int = 0
    last_used_at: datetime | None = None
    void: Void | None = None

    @property
    def use(self) -> GrantUse:
        """The reference for requests that it answers."""
        return GrantUse(
            id=self.id, scope=self.scope, granter=self.granter, granted_at=self.granted_at, reason=self.reason
        )

    def is_over(self, now: datetime) -> bool:
        """Whether it has expired or is used up."""
        return (self.until is not None and now >= self.until) or (self.uses is not None and self.used >= self.uses)

    def used_at(self, now: datetime) -> Grant:
        """Return the grant after one more call."""
        return replace(self, used=self.used + 1, last_used_at=now)

    def is_for(self, call: ToolCall) -> bool:
        """Whether it covers this call, disregarding changes since it was given."""
        if call.server != self.server or self.kernel_id not in (None, call.origin.kernel_id):
            return False
        if self.thread_id not in (None, call.origin.thread_id):
            return False
        if self.scope is Scope.SERVER_READ_ONLY:
            return call.tool in self.definitions
        return call.tool == self.tool and (not self.arguments or self.arguments == arguments_digest(call))

    def covers(self, tool: ToolDescription, trust_key: str) -> bool:
        """Whether it still applies to the tool of a covered call, as the server describes it."""
        is_seen = not self.definitions or self.definitions.get(tool.name) == tool.digest
        return is_seen and self.void is None and self.change(tool, trust_key) is None

    def change(self, tool: ToolDescription, trust_key: str) -> Void | None:
        """Return what has changed since it was given, if anything. A rejection applies regardless of changes.

        Parameters
        ----------
        tool : ToolDescription
            The tool of a covered call, as the server describes it now.
        trust_key : str
            The server's current trust key.
        """
        if self.effect is Effect.DENY or self.server == NOTEBOOK:
            return None  # the description of code differs each time
        if self.trust_key != trust_key:
            return Void.SERVER
        return None if self.definitions.get(tool.name) == tool.digest else Void.DEFINITION

    def voided_by(self, tool: ToolDescription, trust_key: str) -> VoidGrant | None:
        """Return the reference to this grant if it is void; else ``None``."""
        void = self.void or self.change(tool, trust_key)
        if void is None:
            return None
        before = self.seen if tool.name == self.tool else None
        return VoidGrant(grant=self.use, void=void, before=before, server_before=self.server_entry)


def grant_for(
    call: ToolCall,
    tool: ToolDescription,
    terms: GrantTerms,
    *,
    id: str,
    request_id: str,
    effect: Effect,
    granter: Reviewer,
    now: datetime,
    reason: str = "",
    trust_key: str = "",
    server_entry: str = "",
    tools: Iterable[ToolDescription] = (),
) -> Grant:
    """Return the grant that a person gives with an answer to a call, which is its first use.

    Parameters
    ----------
    call : ToolCall
        The call as it runs.
    tool : ToolDescription
        The tool as shown to the person.
    terms : GrantTerms
        The requested terms, checked with `GrantTerms.check`.
    id, request_id : str
        The ids of the grant and the request.
    effect : Effect
        ``allow`` or ``deny``.
    granter : Reviewer
        Who gave it.
    now : datetime
        The current time.
    reason : str
        The granter's reason.
    trust_key : str
        The server's trust key.
    server_entry : str
        What the trust key covers, for people.
    tools : iterable of ToolDescription
        All tools of the server, for the scope ``server-read-only``.
    """
    scope, origin = terms.scope, call.origin
    is_allowed = effect is Effect.ALLOW
    covered = [each for each in tools if only_reads(each)] if scope is Scope.SERVER_READ_ONLY else [tool]
    if not is_allowed or (scope is Scope.THREAD and call.server == NOTEBOOK):
        # A rejection applies to the name alone. The description of code differs each time; its calls are requests, too.
        covered = []
    return Grant(
        id=id,
        effect=effect,
        scope=scope,
        server=call.server,
        tool=call.tool,
        granter=granter,
        granted_at=now,
        request_id=request_id,
        kernel_id=None if scope is Scope.USER else origin.kernel_id,
        notebook_path=origin.notebook_path,
        thread_id=origin.thread_id if scope is Scope.THREAD else None,
        arguments=arguments_digest(call) if scope is Scope.CALL else "",
        trust_key=trust_key,
        server_entry=server_entry,
        definitions={each.name: each.digest for each in covered},
        seen=tool if covered else None,
        until=terms.until,
        uses=terms.uses,
        reason=reason,
        used=1,
        last_used_at=now,
    )


def apply_grants(
    grants: Iterable[Grant],
    call: ToolCall,
    tool: ToolDescription | None,
    evaluation: Evaluation,
    *,
    trust_key: str,
    now: datetime,
) -> Evaluation:
    """Return the evaluation of a call after grants: the strictest wins, and no grant loosens a rule.

    Parameters
    ----------
    grants : iterable of Grant
        All grants.
    call : ToolCall
        The call.
    tool : ToolDescription or None
        The tool; ``None`` if unknown, and then no grant allows the call.
    evaluation : Evaluation
        The rules' evaluation.
    trust_key : str
        The server's current trust key.
    now : datetime
        The current time.
    """
    if evaluation.effect is Effect.DENY:
        return evaluation
    found = [grant for grant in grants if grant.is_for(call) and not grant.is_over(now)]
    for grant in found:
        if grant.effect is Effect.DENY:
            return Evaluation(effect=Effect.DENY, grant=grant.use)
    asks = evaluation.effect is Effect.ASK and evaluation.grants is not GrantLimit.NEVER
    if evaluation.grants is GrantLimit.KERNEL:
        found = [grant for grant in found if grant.scope is not Scope.USER]
    if not asks or tool is None or (call.server, call.tool) in NEVER_GRANTED:
        return evaluation
    # Grants without a limit first, to save the uses of the others.
    for grant in sorted(found, key=lambda each: each.uses is not None):
        if grant.covers(tool, trust_key):
            return Evaluation(effect=Effect.ALLOW, grant=grant.use)
    voids = (grant.voided_by(tool, trust_key) for grant in found)
    return replace(evaluation, voided=next(filter(None, voids), None))
