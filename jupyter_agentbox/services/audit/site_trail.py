"""The audit trail as configured by the settings and the site's files, following changes to these."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.audit_trail import AuditSettings
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.exceptions import AuditError

from .trail import AuditTrail

log = logging.getLogger(__name__)

#: Seconds for which the current trail is cached for past events; calls about to run always check.
_FOUND: Final = 0.05


@dataclass(slots=True)
class _Made:
    """A trail, and the settings of each of its chains."""

    settings: Sequence[AuditSettings]
    trail: AuditTrail | None


class SiteTrail:
    """Provides the current trail. A change of the settings starts new chains.

    Parameters
    ----------
    settings : AuditSettings
        The server's own settings.
    site : callable
        Returns the site's current policy; the same object if nothing changed.
    make : callable
        Creates a trail, given the settings of its chains, or none if it has no chain; raises `ValueError` if a sink
        is invalid.
    clock : callable
        Monotonic clock, in seconds.

    Raises
    ------
    ValueError
        If a sink is invalid.
    """

    def __init__(
        self,
        settings: AuditSettings,
        *,
        site: Callable[[], SitePolicy],
        make: Callable[[Sequence[AuditSettings]], AuditTrail | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._site = site
        self._make = make
        self._clock = clock
        self._seen = site()
        self._seen_at = clock()
        wanted = settings.with_site(self._seen.audit)
        self._made = _Made(wanted, make(wanted))
        self._problem = ""
        self._is_running = False

    def start(self) -> None:
        """Start the trail."""
        self._is_running = True
        if self._made.trail is not None:
            self._made.trail.start()

    async def aclose(self) -> None:
        """End the trail."""
        self._is_running = False
        if self._made.trail is not None:
            await self._made.trail.aclose()

    @property
    def waiting(self) -> Sequence[int]:
        """The number of records that each sink has not accepted yet."""
        return () if self._made.trail is None else self._made.trail.waiting

    def problem(self) -> str:
        """Return why no call can run now, because its record could not be made; empty if one can."""
        trail = self.current()
        return self._problem or ("" if trail is None else trail.problem)

    def current(self) -> AuditTrail | None:
        """Return the trail; ``None`` if there is no sink."""
        if self._clock() - self._seen_at >= _FOUND:
            self._look()
        return self._made.trail

    def for_running(self) -> AuditTrail | None:
        """Return the trail for the record of a call about to run.

        Raises
        ------
        AuditError
            The site configures an invalid sink, so nothing may run.
        """
        self._look()
        if self._problem:
            raise AuditError(f"nothing runs before your administrator mends the site's rules: {self._problem}")
        return self._made.trail

    def _look(self) -> None:
        self._seen_at = self._clock()
        site = self._site()
        if site is not self._seen and self._is_running:
            self._seen = site
            self._follow(site)

    def _follow(self, site: SitePolicy) -> None:
        if site.is_closed:  # denies all calls, and does not say where records go: no change
            return
        before, wanted = self._made, self._settings.with_site(site.audit)
        self._problem = ""
        if wanted == before.settings:
            return
        try:
            trail = self._make(wanted)
        except ValueError as error:
            self._problem = str(error)
            log.error("jupyter_agentbox: nothing runs: %s", error)
            return
        self._made = _Made(wanted, trail)
        if trail is not None:
            trail.start()
        if before.trail is not None:
            in_background(before.trail.aclose(), what="ending the chain of records for the former audit sinks")
