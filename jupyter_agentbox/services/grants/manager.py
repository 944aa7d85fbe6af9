"""The lasting answers that hold: which calls they answer, and how they are given and end."""

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

#: Seconds within which many uses are announced once.
_ANNOUNCE_DELAY: Final = 1.0


class GrantSpentError(Exception):
    """The grant that was to allow or deny a call had no use left, or had ended: evaluate the call again."""


async def _no_tools(_server: str) -> Sequence[ToolDescription]:
    return ()


class GrantManager:
    """Owns the grants of this server process, and knows those of others that are for all kernels.

    What is held in memory says which grant would answer a call. That it may, and how often, the store says, in the
    step that keeps the request.

    Parameters
    ----------
    store : GrantStore
        Keeps them.
    clock : Clock
        The time.
    ids : Ids
        New grants' ids.
    trust_key : callable
        Returns what a server is started with or reached at, given its name; empty for what is part of this package.
    list_tools : callable
        Returns all tools of a server, given its name.
    announce : callable
        Tells the pages that grants changed.
    decide_with : DecideWith
        Who may end a grant.

    Attributes
    ----------
    trust_key : callable
        What was given.
    """

    def __init__(
        self,
        *,
        store: GrantStore,
        clock: Clock,
        ids: Ids,
        trust_key: Callable[[str], str] = lambda _: "",
        list_tools: Callable[[str], Awaitable[Sequence[ToolDescription]]] = _no_tools,
        announce: Callable[[], None] = lambda: None,
        decide_with: DecideWith = DecideWith.ANY,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.trust_key = trust_key
        self._list_tools = list_tools
        self._announce = announce
        self._decide_with = decide_with
        self._grants: dict[str, Grant] = {}
        self._ended: set[str] = set()
        self._announcing: asyncio.TimerHandle | None = None

    async def load(self) -> None:
        """Read what the store has, and remove what is over.

        Raises
        ------
        StorageError
        """
        await self._read()
        await self._end([grant.id for grant in self._grants.values() if grant.is_over(self._clock.now())])

    async def _read(self) -> None:
        """Read what other processes added, counted and ended."""
        before = set(self._grants)
        stored = {grant.id: grant for grant in await self._store.grants()}
        for id in before - set(stored):
            self._grants.pop(id, None)
        for id in set(stored) - self._ended:
            known = self._grants.get(id)
            # What was found to have changed is on its way to the store.
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
        """Return what becomes of a call whose rules give this evaluation."""
        if not self._grants:
            return evaluation
        return apply_grants(
            self._grants.values(),
            call,
            tool,
            evaluation,
            trust_key=self.trust_key(call.server),
            now=self._clock.now(),
        )

    def void_changed(self, call: ToolCall, tool: ToolDescription) -> None:
        """Void, for good, the grants for a call whose server or tool is no longer the one that was seen."""
        key = self.trust_key(call.server) if self._grants else ""
        for grant in list(self._grants.values()):
            void = grant.change(tool, key) if grant.void is None and grant.is_for(call) else None
            if void is not None:
                self._grants[grant.id] = replace(grant, void=void)
                in_background(self._store.void_grant(grant.id, void), what=f"voiding grant {grant.id}")
                self._announce()

    async def give(self, answered: ApprovalRequest, terms: GrantTerms | None, *, trust_key: str) -> Grant | None:
        """Return the grant that a lasting answer gives, not yet in force.

        Without terms it is for this tool in this kernel, or, where that cannot be, for this call only: then there is
        no grant.

        Parameters
        ----------
        answered : ApprovalRequest
            The request with the answer.
        terms : GrantTerms or None
            What the person asked for.
        trust_key : str
            What the server was started with or reached at when the call was made.

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
            wanted.check(call, tool, effect, now=decision.decided_at)
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
            tools=await self._list_tools(call.server) if wanted.scope is Scope.SERVER_READ_ONLY else (),
        )

    def remember(self, grant: Grant) -> None:
        """Put a grant in force that the store has, in the place of those for the same that no longer hold."""
        self._grants[grant.id] = grant
        stale = [each.id for each in self._grants.values() if each.void is not None and _is_same(each, grant)]
        if stale:
            in_background(self._end(stale), what="ending grants that no longer hold")
        self._announce()

    def used(self, use: GrantUse, at: datetime) -> None:
        """Take note of a use that the store counted."""
        grant = self._grants.get(use.id)
        if grant is None:
            return
        self._grants[use.id] = grant.used_at(at)
        if self._announcing is None:
            self._announcing = asyncio.get_running_loop().call_later(_ANNOUNCE_DELAY, self._announce_uses)

    def spent(self, use: GrantUse) -> None:
        """Forget a grant of which the store has no use left, or that another process ended."""
        self._grants.pop(use.id, None)
        self._announce()

    async def revoke(self, grant_id: str, *, reviewer: Reviewer) -> None:
        """End a grant; when this returns, it answers nothing more.

        Raises
        ------
        NeedsPersonError
            Who asks is no person, and only they may.
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
            # No other process takes them for its own, and the next one removes them.
            log.exception("the grants of kernel %s could not be removed", kernel_id)

    def close(self) -> None:
        """Announce nothing more."""
        if self._announcing is not None:
            self._announcing.cancel()

    async def _end(self, ids: Iterable[str]) -> None:
        """Remove grants, in memory first: of two that come at once, the stricter counts."""
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
    """Whether a grant that no longer holds was for what another one is for."""
    return (void.server, void.tool, void.kernel_id, void.effect) == (
        grant.server,
        grant.tool,
        grant.kernel_id,
        grant.effect,
    )
