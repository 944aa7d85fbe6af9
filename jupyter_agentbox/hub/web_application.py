"""The Hub service's web application: its routes, and what its handlers share."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler
from tornado import web

from . import sign_in_pages
from .api_handlers import (
    AuditHandler,
    DecisionHandler,
    DecisionsHandler,
    LiveHandler,
    MetricsHandler,
    PolicyHandler,
    ReadyHandler,
    RequestHandler,
    RequestsHandler,
    WaitingHandler,
)
from .box import HubBox
from .handlers import SETTINGS_KEY, NoPageHandler, Parts, StaticHandler, log_error
from .history_page import HistoryPageHandler
from .hold_handlers import HoldReleaseHandler, HoldsHandler
from .inbox import DecisionsPageHandler, InboxHandler
from .mcp_endpoint import McpHandler
from .pages import RequestPageHandler
from .report_handlers import GapsHandler, ReportsHandler

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds for which the service's readiness is known after a check, which writes to the database.
READY_FOR: Final = 1.0
_ID: Final = r"(?P<request_id>[A-Za-z0-9_-]+)"


def make_application(box: HubBox, hub_auth: HubOAuth, public_url: str) -> web.Application:
    """Return the web application.

    Parameters
    ----------
    box : HubBox
        The parts of the service.
    hub_auth : HubOAuth
        The connection to the Hub; it knows the service's prefix.
    public_url : str
        The URL that people open, with a slash at the end.
    """
    prefix = hub_auth.base_url
    parts = Parts(
        hub_auth=hub_auth,
        reviews=box.reviews,
        calls=box.calls,
        open_calls=box.open_calls,
        audit=box.audit,
        reports=box.reports,
        call_limiter=box.call_limiter,
        return_limiter=box.return_limiter,
        request_limiter=box.request_limiter,
        metrics=box.metrics,
        prefix=prefix,
        is_ready=_shared(box.is_ready),
        policy=box.policy,
        approver_groups=box.approver_groups,
        sign_in_managers=box.sign_in_managers,
        changes=box.changes,
        forwarder=box.forwarder,
    )
    files = Path(str(resources.files("jupyter_agentbox.hub")))
    application = web.Application(
        routes(prefix, public_url),
        template_path=str(files / "templates"),
        static_path=str(files / "static"),
        static_url_prefix=f"{prefix}static/",
        static_handler_class=StaticHandler,
        default_handler_class=NoPageHandler,
        # In memory only: after a restart everybody has to log in again, and nobody can sign a cookie.
        cookie_secret=secrets.token_bytes(32),
        xsrf_cookies=True,
        # The forms contain it. A script of a notebook, which has the same origin on most Hubs, must not have it.
        xsrf_cookie_kwargs={"httponly": True},
        log_function=_log_request,
    )
    application.settings[SETTINGS_KEY] = parts
    return application


def routes(prefix: str, public_url: str) -> list[tuple[Any, ...]]:
    """Return the service's routes below its prefix."""
    return [
        (prefix, InboxHandler),
        (rf"{prefix}decisions", DecisionsPageHandler),
        (rf"{prefix}history", HistoryPageHandler),
        (rf"{prefix}requests/{_ID}", RequestPageHandler),
        (rf"{prefix}oauth_callback", _CallbackHandler),
        *sign_in_pages.routes(prefix),
        (rf"{prefix}api/requests", RequestsHandler),
        (rf"{prefix}api/waiting", WaitingHandler, {"public_url": public_url}),
        (rf"{prefix}api/decisions", DecisionsHandler),
        (rf"{prefix}api/requests/{_ID}", RequestHandler),
        (rf"{prefix}api/requests/{_ID}/decision", DecisionHandler),
        (rf"{prefix}api/audit", AuditHandler),
        (rf"{prefix}api/reports", ReportsHandler),
        (rf"{prefix}api/reports/gaps", GapsHandler),
        (rf"{prefix}api/holds", HoldsHandler),
        (rf"{prefix}api/holds/{_ID}/release", HoldReleaseHandler),
        (rf"{prefix}api/policy", PolicyHandler),
        (rf"{prefix}mcp/([A-Za-z0-9_-]+)", McpHandler, {"public_url": public_url}),
        (rf"{prefix}metrics", MetricsHandler),
        (rf"{prefix}health/live", LiveHandler),
        (rf"{prefix}health/ready", ReadyHandler),
    ]


class _CallbackHandler(HubOAuthCallbackHandler):  # type: ignore[misc]  # jupyterhub has no types
    """The page to which the Hub redirects people after login."""

    @property
    def hub_auth(self) -> HubOAuth:
        parts: Parts = self.settings[SETTINGS_KEY]
        return parts.hub_auth

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log why a login failed."""
        del typ, tb
        log_error(self.request, value)


def _shared(check: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Return a check whose result is shared by all who ask within `READY_FOR`: anybody may, as often as they like."""
    began = -math.inf
    running: asyncio.Future[T]

    async def checked() -> T:
        nonlocal began, running
        if time.monotonic() - began >= READY_FOR:
            began, running = time.monotonic(), asyncio.ensure_future(check())
        return await asyncio.shield(running)

    return checked


def _log_request(handler: web.RequestHandler) -> None:
    """Count and log a request, without its query, which may contain an OAuth code.

    A 405 for `GET` is no warning: each MCP client tries to open a stream that way when it connects.
    """
    parts: Parts = handler.settings[SETTINGS_KEY]
    parts.metrics.responded(handler.get_status())
    request = handler.request
    is_usual = handler.get_status() < 400 or (request.method, handler.get_status()) == ("GET", 405)
    level = logging.DEBUG if is_usual else logging.WARNING
    log.log(level, "%s %s %d", request.method, request.path, handler.get_status())
