"""Users' sign-ins to central servers that the policy no longer has, or has at another address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.exceptions import StorageError, ToolServerError
from jupyter_agentbox.mcp_client.configuration import HttpServer, UnusableServer
from jupyter_agentbox.mcp_client.sign_ins import SignIn, sign_in_from_json
from jupyter_agentbox.mcp_client.token_requests import Revocation, revoke
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of
from jupyter_agentbox.storage.sign_ins import SignInRow, SqlSignInTable

from .policy_file import PolicyFile
from .policy_in_force import PolicyInForce
from .sign_in_keys import KeptSignIn, SignInKeys

log = logging.getLogger(__name__)

_DAY: Final = 86_400.0
#: How often a provider is asked to revoke a sign-in until it answers; below, the shortest time in between, in seconds.
#: Changes of the policy may make many looks in a short time. Those that are made each hour are never too early.
MOST_REVOCATIONS: Final = 5
_PAUSE: Final = 3000.0
#: The name of a user and a group that no Hub has. A server whose address depends on its user, or on the user's groups,
#: has another address for them than for others.
_NOBODY: Final = "agentbox-of-nobody"


class _Addresses:
    """The addresses of the servers to which users sign in, as a policy has them.

    Parameters
    ----------
    policy : PolicyFile
        The policy.
    environment : mapping
        The service's environment.
    """

    def __init__(self, policy: PolicyFile, environment: Mapping[str, str]) -> None:
        self._policy = policy
        self._environment = environment
        here, there = self._keys_of("user", ()), self._keys_of(_NOBODY, (_NOBODY,))
        #: The servers that have the same address for all users.
        self._of_all = {name: key for name, key in here.items() if there.get(name) == key}

    def has_left(self, kept: KeptSignIn) -> bool:
        """Whether the policy no longer has the server of a sign-in, or has it at another address."""
        if kept.server not in self._policy.sign_in_servers:
            return True
        if kept.server in self._of_all:
            return kept.sign_in.get("trust_key") != self._of_all[kept.server]
        keys = [self._keys_of(kept.user, groups).get(kept.server) for groups in ((), (_NOBODY,))]
        if keys[0] is None or keys[0] != keys[1]:  # only the user's next request tells which groups they are in
            return False
        return kept.sign_in.get("trust_key") != keys[0]

    def _keys_of(self, user: str, groups: tuple[str, ...]) -> dict[str, str]:
        """Return the trust keys of a user's servers that can be used."""
        found = self._policy.servers_for(self._environment, user=user, groups=groups).servers.items()
        return {name: trust_key_of(one) for name, one in found if not isinstance(one, UnusableServer)}


class LeftSignIns:
    """Removes the sign-ins to servers that have left the policy for longer than a mistaken edit lasts.

    The time since which a server is gone is stored, encrypted, with each sign-in to it. So neither a restart nor
    another replica begins to count anew, and the time is forgotten as soon as the server is back.

    Before a provider is asked to revoke a sign-in, it is marked, and so can no longer be used. It is deleted after the
    provider has revoked or refused. If the process ends in between, or the provider does not answer, a later look tries
    again, also in another process.

    Parameters
    ----------
    table : SqlSignInTable
        The sign-ins.
    keys : SignInKeys
        Decrypts them.
    policy : PolicyInForce
        The policy in force.
    environment : mapping
        The service's environment, for variables in the entries of servers.
    clock : Clock
        The time.
    grace_days : float
        For how many days a server must be gone.
    """

    def __init__(
        self,
        table: SqlSignInTable,
        keys: SignInKeys,
        *,
        policy: PolicyInForce,
        environment: Mapping[str, str],
        clock: Clock,
        grace_days: float,
    ) -> None:
        self._table = table
        self._keys = keys
        self._policy = policy
        self._environment = environment
        self._clock = clock
        self._grace = grace_days * _DAY
        self._look: asyncio.Task[None] | None = None
        policy.follow(lambda _before, _now: self.begin())  # a server that is back only until the next look was back

    def begin(self) -> None:
        """Do `remove` in the background, unless the last one still runs: a provider may take its time."""
        if self._look is None or self._look.done():
            self._look = in_background(self.remove(), what="removing sign-ins to servers that have left the policy")

    async def aclose(self) -> None:
        """End what runs in the background. The next look continues where it stopped."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])

    async def remove(self) -> None:
        """Look at all sign-ins: note which servers are gone, and revoke and delete what has been left for too long."""
        try:
            while not await self._remove_by(self._policy.current):
                pass
        except (StorageError, ToolServerError) as error:
            log.warning("sign-ins to servers that have left the policy will be removed later: %s", error)

    async def _remove_by(self, policy: PolicyFile) -> bool:
        """Do `remove` by a policy; return whether it stayed in force meanwhile."""
        addresses = await asyncio.to_thread(_Addresses, policy, self._environment)
        row: SignInRow | None = None
        while rows := await self._table.page(row):
            for row in rows:
                if self._policy.current is not policy:
                    return False
                await self._look_at(row, addresses, policy)
        return self._policy.current is policy

    async def _look_at(self, row: SignInRow, addresses: _Addresses, policy: PolicyFile) -> None:
        kept = await asyncio.to_thread(self._keys.decrypt_kept, row.content)
        if kept is None:  # nobody can use it
            return
        now = self._clock.now().timestamp()
        if kept.revocations:  # it was decided before, and cannot be undone
            if kept.asked_at is None or not 0 <= now - kept.asked_at < _PAUSE:
                await self._end(row, kept)
            return
        is_left = await asyncio.to_thread(addresses.has_left, kept)
        if not is_left and kept.left_at is not None:
            await self._change(row, kept, replace(kept, left_at=None))
        elif is_left and kept.left_at is None:
            await self._change(row, kept, replace(kept, left_at=now))
        elif is_left and kept.left_at is not None and now - kept.left_at >= self._grace:
            await self._policy.look()  # the administrator may just have written the server back
            if self._policy.current is policy:
                await self._end(row, kept)

    async def _end(self, row: SignInRow, kept: KeptSignIn) -> None:
        """Have the provider revoke a sign-in if that is possible, and then delete it."""
        outcome = Revocation.UNANSWERED
        if kept.revocations < MOST_REVOCATIONS:
            asked_at = self._clock.now().timestamp()
            marked = replace(kept, revocations=kept.revocations + 1, asked_at=asked_at)
            content = await asyncio.to_thread(self._keys.encrypt_kept, marked)
            if not await self._replace(row, kept, content):
                return
            row, kept = replace(row, content=content), marked
            outcome = await _revoke(kept)
            if outcome is Revocation.UNANSWERED and kept.revocations < MOST_REVOCATIONS:
                return
        if await self._replace(row, kept, None):
            self._log_end(kept, is_revoked=outcome is Revocation.DONE)

    def _log_end(self, kept: KeptSignIn, *, is_revoked: bool) -> None:
        log.info(
            "the sign-in of %s to the central server %s was removed: the policy has not had that server for %g days",
            *(one_line(kept.user), kept.server, self._grace / _DAY),
        )
        if not is_revoked:
            log.warning(
                "the provider of %s was asked %s to revoke the sign-in of %s, and did not confirm it: revoke it"
                " there, if it is still valid",
                *(kept.server, "once" if kept.revocations == 1 else f"{kept.revocations} times", one_line(kept.user)),
            )

    async def _change(self, row: SignInRow, kept: KeptSignIn, after: KeptSignIn) -> None:
        await self._replace(row, kept, await asyncio.to_thread(self._keys.encrypt_kept, after))

    async def _replace(self, row: SignInRow, kept: KeptSignIn, content: bytes | None) -> bool:
        """Replace a sign-in, or with ``None`` delete it, unless its user has signed in or out meanwhile.

        Returns whether it was still there.
        """
        is_there = False

        def changed(before: bytes | None) -> bytes | None:
            nonlocal is_there
            is_there = before == row.content
            return content if is_there else before

        await self._table.change(kept.user, kept.server, changed, is_renewal=False)
        return is_there


async def _revoke(kept: KeptSignIn) -> Revocation:
    """Have the provider revoke a sign-in."""
    found = sign_in_from_json(kept.sign_in, str(kept.sign_in.get("trust_key") or ""))
    server = None if found is None else _server_of(kept.server, found)
    return Revocation.DONE if found is None or server is None else await revoke(server, found)


def _server_of(name: str, found: SignIn) -> HttpServer | None:
    """Return the server to which a user signed in, from its metadata: the policy may no longer have it."""
    for metadata, key in ((found.resource, "resource"), (found.provider, "issuer")):
        if metadata is not None and isinstance(url := metadata.get(key), str):
            return HttpServer(name=name, url=url)
    return None
