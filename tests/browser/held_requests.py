"""Requests of a page that wait until a test lets them go on."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route


class HeldRequests:
    """The requests of a page whose addresses match, from now on.

    Parameters
    ----------
    page : Page
        Who asks.
    address : str or Pattern
        Which requests, as Playwright matches them.
    """

    def __init__(self, page: Page, address: str | re.Pattern[str]) -> None:
        self._held: list[Route] = []
        self._is_released = False
        page.route(address, lambda route: self._take(route))  # noqa: PLW0108  # Playwright inspects it

    def release(self) -> None:
        """Let go on what was held, and all that comes: a test may hear of a request before it is held."""
        self._is_released = True
        for route in self._held:
            route.continue_()

    def _take(self, route: Route) -> None:
        if self._is_released:
            route.continue_()
        else:
            self._held.append(route)
