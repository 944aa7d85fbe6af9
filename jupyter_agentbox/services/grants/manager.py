"""The current grants: which calls they answer, and how they are given and end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.grant_uses import GrantUse, Scope
from jupyter_agentbox.core.grants import Grant, GrantTerms, apply_grants, grant_for
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.ports import Clock, GrantStore, Ids
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import InvalidDecisionError, StorageError, UnknownGrantError

log = logging.getLogger(__name__)

#: Seconds within which uses are announced together.
_ANNOUNCE_DELAY: Final = 1.0


class GrantSpentError(Exception):
    """The grant that was to decide a call was used up or had ended: evaluate the call again."""


async def _no_tools(_server: str) -> Sequence[ToolDescription]:
    return ()


class GrantManager:
    """Owns the grants of this server process, and knows other processes' grants for all kernels.

    The grants in memory determine which one would answer a call; the store determines whether and how often it may, in
    the write that stores the request.

    Parameters
    ----------
    store : GrantStore
        Stores the grants.
    clock : Clock
        Source of the time.
    ids : Ids
        Generates grant ids.
    trust_key : callable
        Returns the trust key of a server, given its name; empty for parts of this package.
    server_entry : callable
        Returns what that key covers, as in `Grant.server_entry`.
    list_tools : callable
        Returns all tools of a server, given its name.
    announce : callable
        Notifies pages that grants changed.
    decide_with : DecideWith
        The credentials required to end a grant.

    Attributes
    ----------
    trust_key : callable
        The constructor's argument.
    """

    def __init__(
        self,
        *,
        store: GrantStore,
        clock: Clock,
        ids: Ids,
        trust_key: Callable[[str], str] = lambda _: "",
        server_entry: Callable[[str], str] = lambda _: "",
        list_tools: Callable[[str], Awaitable[Sequence[ToolDescription]]] = _no_tools,
        announce: Callable[[], None] = lambda: None,
        decide_with: DecideWith = DecideWith.ANY,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.trust_key = trust_key
        self._server_entry = server_entry
        self._list_tools = list_tools
        self._announce = announce
        self._decide_with = decide_with
        self._grants: dict[str, Grant] = {}
        self._ended: set[str] = set()
        self._announcing: asyncio.TimerHandle | None = None

    async def load(self) -> None:
        """Load the stored grants, and delete those that have ended.

        Raises
        ------
        StorageError
        """
        await self._read()
        await self._end([grant.id for grant in self._grants.values() if grant.is_over(self._clock.now())])

    async def _read(self) -> None:
        """Read the grants that other processes added, used and ended."""
        before = set(self._grants)
        stored = {grant.id: grant for grant in await self._store.grants()}
        for id in before - set(stored):
            self._grants.pop(id, None)
        for id in set(stored) - self._ended:
            known = self._grants.get(id)
            # Voiding that was just detected is still being stored.
            self._grants[id] = stored[id] if known is None else replace(stored[id], void=known.void or stored[id].void)

    async def list(self) -> Sequence[Grant]:
        """Return the grants that are not over, those given last first; also those that a change has voided.

        Raises
        ------
        StorageError
        """
        await self._read()
        now = self._clock.now()
        found = [grant for grant in self._grants.values() if not grant.is_over(now)]
        return sorted(found, key=lambda grant: grant.granted_at, reverse=True)

    def apply(self, call: ToolCall, tool: ToolDescription | None, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of a call after grants, given the rules' evaluation."""
        if not self._grants:
            return evaluation
        applied = apply_grants(
            self._grants.values(),
            call,
            tool,
            evaluation,
            trust_key=self.trust_key(call.server),
            now=self._clock.now(),
        )
        voided = applied.voided
        if voided is None or not voided.server_before:
            return applied
        now = self._server_entry(call.server)
        before, now = ("", "") if now == voided.server_before else (voided.server_before, now)
        return replace(applied, voided=replace(voided, server_before=before, server_now=now))

    def void_changed(self, call: ToolCall, tool: ToolDescription) -> None:
        """Void, permanently, the grants for a call whose server or tool has changed since they were given."""
        key = self.trust_key(call.server) if self._grants else ""
        for grant in list(self._grants.values()):
            void = grant.change(tool, key) if grant.void is None and grant.is_for(call) else None
            if void is not None:
                self._grants[grant.id] = replace(grant, void=void)
                in_background(self._store.void_grant(grant.id, void), what=f"voiding grant {grant.id}")
                self._announce()

    async def give(self, answered: ApprovalRequest, terms: GrantTerms | None, *, trust_key: str) -> Grant | None:
        """Return the grant that a lasting answer gives, not yet in force.

        Without terms it covers this tool in this kernel or, if that is impossible, only this call: then there is no
        grant.

        Parameters
        ----------
        answered : ApprovalRequest
            The answered request.
        terms : GrantTerms or None
            The requested terms.
        trust_key : str
            The server's trust key at the time of the call.

        Raises
        ------
        InvalidDecisionError, ToolServerError
        """
        decision, call, tool = answered.decision, answered.effective_call, answered.tool
        if decision is None or not decision.answer.is_lasting:
            return None
        effect = Effect.ALLOW if decision.answer.allows else Effect.DENY
        wanted = terms or GrantTerms()
        try:
            wanted.check(call, tool, effect, now=decision.decided_at, limit=answered.evaluation.grants)
        except InvalidDecisionError:
            if terms is not None:
                raise
            return None
        return grant_for(
            call,
            tool,
            wanted,
            id=self._ids.new(),
            request_id=answered.id,
            effect=effect,
            granter=decision.reviewer,
            now=decision.decided_at,
            reason=decision.reason,
            trust_key=trust_key,
            # Of the server that the person saw, unless another has taken its name since.
            server_entry=self._server_entry(call.server) if trust_key == self.trust_key(call.server) else "",
            tools=await self._list_tools(call.server) if wanted.scope is Scope.SERVER_READ_ONLY else (),
        )

    def remember(self, grant: Grant) -> None:
        """Put a stored grant in force, replacing void grants for the same calls."""
        self._grants[grant.id] = grant
        stale = [each.id for each in self._grants.values() if each.void is not None and _is_same(each, grant)]
        if stale:
            in_background(self._end(stale), what="ending grants that no longer hold")
        self._announce()

    def used(self, use: GrantUse, at: datetime) -> None:
        """Count a use that the store has counted."""
        grant = self._grants.get(use.id)
        if grant is None:
            return
        self._grants[use.id] = grant.used_at(at)
        if self._announcing is None:
            self._announcing = asyncio.get_running_loop().call_later(_ANNOUNCE_DELAY, self._announce_uses)

    def spent(self, use: GrantUse) -> None:
        """Drop a grant that the store reports as used up, or that another process ended."""
        self._grants.pop(use.id, None)
        self._announce()

    async def revoke(self, grant_id: str, *, reviewer: Reviewer) -> None:
        """End a grant; on return, it answers no more calls.

        Raises
        ------
        NeedsPersonError
            The reviewer is not a person, and only people may end grants.
        UnknownGrantError, StorageError
        """
        reviewer.check(self._decide_with)
        if grant_id not in self._grants:
            await self._read()
        if grant_id not in self._grants:
            raise UnknownGrantError(f"no grant `{grant_id:.80}`")
        await self._end([grant_id])
        self._announce()

    async def forget(self, kernel_id: str) -> None:
        """End the grants of a kernel that ended."""
        ids = [grant.id for grant in self._grants.values() if grant.kernel_id == kernel_id]
        if not ids:
            return
        for id in ids:
            self._grants.pop(id, None)
        self._announce()
        try:
            await self._end(ids)
        except StorageError:
            # No other process adopts them, and the next one deletes them.
            log.exception("the grants of kernel %s could not be removed", kernel_id)

    def close(self) -> None:
        """Stop announcing."""
        if self._announcing is not None:
            self._announcing.cancel()

    async def _end(self, ids: Iterable[str]) -> None:
        """Delete grants, in memory first: if two changes come at once, the stricter wins."""
        ended = list(ids)
        rejections = [id for id in ended if (known := self._grants.get(id)) and known.effect is Effect.DENY]
        for id in set(ended) - set(rejections):
            self._grants.pop(id, None)
        self._ended.update(ended)
        try:
            await self._store.end_grants(ended)
        except StorageError:
            self._ended.difference_update(ended)
            raise
        for id in rejections:
            self._grants.pop(id, None)

    def _announce_uses(self) -> None:
        self._announcing = None
        self._announce()


def _is_same(void: Grant, grant: Grant) -> bool:
    """Whether a void grant covered the same calls as another one."""
    return (void.server, void.tool, void.kernel_id, void.effect) == (
        grant.server,
        grant.tool,
        grant.kernel_id,
        grant.effect,
    )
