"""The connected parts of the Hub service, and how they start and end."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from jupyter_agentbox.exceptions import DatabaseHeldError, StorageError
from jupyter_agentbox.mcp_client.arguments import JsonSchemaChecker
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.audit.changes import ChangeRecorder
from jupyter_agentbox.services.audit.manager import AuditManager
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.service_claim import ServiceClaim

from .approver_groups import ApproverGroups
from .calls import CentralCalls
from .central_servers import CentralServers
from .forwarding import RecordForwarder
from .left_sign_ins import LeftSignIns
from .metrics import Metrics
from .open_calls import OpenCalls
from .policy_in_force import PolicyInForce
from .rate_limits import RateLimiter
from .reports import ReportManager
from .reviews import ReviewManager
from .sign_in_managers import SignInManagers
from .sign_ins import CentralSignIns

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubBox:
    """The parts of the service, connected."""

    claim: ServiceClaim
    store: SqlApprovalStore
    servers: CentralServers
    approvals: ApprovalManager
    reviews: ReviewManager
    calls: CentralCalls
    open_calls: OpenCalls
    audit: AuditManager
    reports: ReportManager
    call_limiter: RateLimiter
    return_limiter: RateLimiter
    request_limiter: RateLimiter
    metrics: Metrics
    checker: JsonSchemaChecker
    policy: PolicyInForce
    approver_groups: ApproverGroups
    changes: ChangeRecorder
    sign_ins: CentralSignIns
    left_sign_ins: LeftSignIns
    sign_in_managers: SignInManagers
    forwarder: RecordForwarder | None

    async def start(self) -> None:
        """Open the store. Requests that waited when a service ended are kept for their callers; others are closed.

        Raises
        ------
        DatabaseHeldError
            If another service uses the database.
        StorageError
        """
        await self.claim.take()
        await self._begin()

    async def start_in_turn(self, stopped: asyncio.Event) -> bool:
        """Start as soon as no other service uses the database; return ``False`` if `stopped` was set before that.

        Raises
        ------
        StorageError
        """
        if not await self.claim.take_in_turn(stopped):
            return False
        await self._begin()
        return True

    async def _begin(self) -> None:
        self.sign_ins.read_keys()
        await self.store.open()
        if self.forwarder is not None:
            await self.forwarder.start()
        await self.approvals.abandoned.recover()
        self.changes.start()
        if self.store.look_again is not None:
            self.approvals.abandoned.look_again(self.store.look_again, self.store.is_look_due)
        await self.withdraw_lost()

    async def withdraw_lost(self) -> None:
        """Close the kept requests whose callers did not come back in time."""
        await self.calls.withdraw_lost()

    async def is_ready(self) -> str | None:
        """Check that the database can be read and written; return since when this process has held it.

        Raises
        ------
        StorageError
        """
        await self.store.check_writable()
        return self.claim.since

    async def aclose(self) -> None:
        """Leave waiting requests to the next process, cancel the rest, stop the central servers and close the store."""
        if self.claim.since is None:  # this process never held the database
            self.checker.close()
            await self.claim.aclose()
            return
        await self.approver_groups.aclose()
        if self.forwarder is not None:  # while votes and decisions wait for a sink, no other process can take them over
            await self.forwarder.finish_announcements()
        self.approvals.abandoned.stop_looking()
        self.approvals.unstored.stop()
        await self.calls.leave()
        await self.changes.aclose()
        if not self.claim.lost.is_set():  # otherwise another process decides what becomes of them
            await self.approvals.orphan()
        self.sign_in_managers.close()
        await self.servers.aclose()
        await self.left_sign_ins.aclose()
        await self.sign_ins.aclose()
        self.checker.close()
        await self.approvals.recorded()
        await self.audit.aclose()
        await self.reports.aclose()
        if self.forwarder is not None:
            await self.forwarder.aclose(has_database=not self.claim.lost.is_set())
        try:
            await self.store.leave()
        except DatabaseHeldError as error:
            log.debug("another service holds the database: %s", error)
        except StorageError:
            log.exception("the database could not be released: the next process has to wait for `claim_timeout`")
        await self.store.aclose()
        await self.claim.aclose()
