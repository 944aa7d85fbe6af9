"""What the Hub service's handlers share: authentication, security headers and error answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from typing import Any, Final

from jupyterhub.services.auth import HubOAuth, HubOAuthenticated
from tornado import web
from tornado.httputil import HTTPServerRequest

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    AuditError,
    NotAnApproverError,
    StorageError,
    TooManyRequestsError,
    UnknownReviewerError,
)
from jupyter_agentbox.services.audit.changes import ChangeRecorder
from jupyter_agentbox.services.audit.manager import AuditManager
from jupyter_agentbox.services.handlers import read_json_object, status_code_of
from jupyter_agentbox.services.json_answers import answer_text

from .approver_groups import ApproverGroups
from .callers import AUDIT_SCOPE, HOLD_SCOPE, Caller, caller_by_token
from .calls import CentralCalls
from .forwarding import RecordForwarder
from .metrics import Metrics
from .open_calls import OpenCalls
from .policy_in_force import PolicyInForce
from .rate_limits import LONGEST, RateLimiter
from .reports import ReportManager
from .reviews import ReviewManager
from .sign_in_managers import SignInManagers

log = logging.getLogger(__name__)

#: The page to which errors link by default, below the service's address, and its title.
APPROVALS: Final = ("", "Approvals")
#: The heading of errors by default.
FAILED: Final = "That did not work"

#: The key of `Parts` in the web application's settings.
SETTINGS_KEY: Final = "agentbox_hub"

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; img-src 'self'"
)
_OUT_OF_DATE: Final = (
    "this page was opened before your last login or logout, so nothing changed. Open it again, and press the button"
    " there"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of the service that handlers use.

    Attributes
    ----------
    is_ready : callable
        Raises `StorageError` unless the database can be read and written.
    policy : PolicyInForce
        The policy in force.
    approver_groups : ApproverGroups
        Whether the groups that it names can approve.
    sign_in_managers : SignInManagers
        Sign users in to central servers, and out.
    changes : ChangeRecorder
        Records what people change.
    forwarder : RecordForwarder or None
        What sends the record to audit sinks; ``None`` if there are none.
    """

    hub_auth: HubOAuth
    reviews: ReviewManager
    calls: CentralCalls
    open_calls: OpenCalls
    audit: AuditManager
    reports: ReportManager
    call_limiter: RateLimiter
    return_limiter: RateLimiter
    request_limiter: RateLimiter
    metrics: Metrics
    prefix: str
    is_ready: Callable[[], Any]
    policy: PolicyInForce
    approver_groups: ApproverGroups
    sign_in_managers: SignInManagers
    changes: ChangeRecorder
    forwarder: RecordForwarder | None


def set_safe_headers(handler: web.RequestHandler) -> None:
    """Forbid scripts, content of other origins, frames in other pages, and pages that keep hold of this one."""
    handler.set_header("Content-Security-Policy", _POLICY)
    handler.set_header("Cross-Origin-Opener-Policy", "same-origin")
    handler.set_header("X-Content-Type-Options", "nosniff")


class StaticHandler(web.StaticFileHandler):
    """Serves static files, in no other page's frame."""

    def set_default_headers(self) -> None:
        """Set the headers of the pages."""
        set_safe_headers(self)


class HubServiceHandler(HubOAuthenticated, web.RequestHandler):  # type: ignore[misc]  # jupyterhub has no types
    """Base of all handlers."""

    caller: Caller

    @property
    def hub_auth(self) -> HubOAuth:
        """The connection to the Hub."""
        return self.parts.hub_auth

    @property
    def parts(self) -> Parts:
        """The parts of the service."""
        parts: Parts = self.settings[SETTINGS_KEY]
        return parts

    def get_current_user(self) -> Caller | None:
        """Return the caller that `prepare` found. `HubAuthenticated` would ask the Hub and block the event loop."""
        return getattr(self, "caller", None)

    def set_default_headers(self) -> None:
        """Forbid caching, scripts, content of other origins, and frames in other pages."""
        set_safe_headers(self)
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Cache-Control", "no-store")

    async def caller_by_cookie(self, *, use_cache: bool) -> Caller | None:
        """Return the person logged in with this browser; ``None`` if nobody is."""
        hub_auth = self.parts.hub_auth
        cookie = self.get_secure_cookie(hub_auth.cookie_name)
        if not cookie:
            return None
        self._check_is_navigation()
        token = cookie.decode("ascii", "replace")
        return await self._caller_by_token(token, session=hub_auth.get_session_id(self), use_cache=use_cache)

    async def take_turn(self, caller: Caller) -> None:
        """Wait for the caller's turn, so that who asks for much does not delay the others."""
        try:
            await self.parts.request_limiter.turn(caller.name)
        except TooManyRequestsError as error:
            raise web.HTTPError(429, str(error)) from None

    def _check_is_navigation(self) -> None:
        """Refuse what a script requests: the pages here run none, and a notebook's has the same origin on most Hubs.

        Browsers say how a request came about in headers that no script can set, if the Hub is reached over HTTPS.
        """
        headers = self.request.headers
        mode, destination = headers.get("Sec-Fetch-Mode", "navigate"), headers.get("Sec-Fetch-Dest", "document")
        if (mode, destination) != ("navigate", "document"):
            raise web.HTTPError(
                403, "a script in the browser asked for this. With a login session, only you can: open the page itself"
            )

    async def caller_by_header(self, *, use_cache: bool) -> Caller | None:
        """Return the owner of the token in the request's header; ``None`` without a token that may be used here."""
        token = self.parts.hub_auth.get_token(self, in_cookie=False)
        return await self._caller_by_token(token, use_cache=use_cache) if token else None

    async def _caller_by_token(self, token: str, *, session: str | None = None, use_cache: bool) -> Caller | None:
        try:
            caller = await caller_by_token(self.parts.hub_auth, token, session=session, use_cache=use_cache)
        except UnknownReviewerError:
            self.parts.metrics.hub_failed()
            raise
        if caller is not None:
            self.parts.approver_groups.saw(caller)
        return caller

    def check_may_read_record(self) -> None:
        """Refuse callers who may not read the record of all users."""
        if not self.parts.reviews.may_read_record(self.caller):
            raise web.HTTPError(
                403,
                "only members of a group listed under `auditors` in the policy, and those with the Hub scope"
                f" `{AUDIT_SCOPE}`, may read the record",
            )

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log an `AgentBoxError` in one line: it is an answer, not a defect."""
        del typ, tb
        if isinstance(value, AgentBoxError):
            level = logging.WARNING if isinstance(value, StorageError) else logging.INFO
            said = str(value) if isinstance(value, StorageError) else value.code
            caller = getattr(self, "caller", None)
            who = "nobody" if caller is None else caller.name
            log.log(level, "%s %s by %s: %s", self.request.method, self.request.path, one_line(who), said)
        else:
            log_error(self.request, value)


class JsonHandler(HubServiceHandler):
    """Base of the REST API's handlers, for tokens and for browsers' login sessions.

    Attributes
    ----------
    asks_anew : bool
        Whether the Hub is asked about the caller each time, even for a request that only reads.
    """

    asks_anew = False

    async def prepare(self) -> None:
        """Identify the caller. The cached answer of the Hub is used only for requests that read."""
        use_cache = self.request.method in ("GET", "HEAD") and not self.asks_anew
        by = self.caller_by_header if self._has_token else self.caller_by_cookie
        caller = await by(use_cache=use_cache)
        if caller is None:
            raise web.HTTPError(403, "this needs a token or a login session that may use this service")
        await self.take_turn(caller)
        self.caller = caller

    def check_xsrf_cookie(self) -> None:
        """Refuse requests that another site made a browser send. With a token in the header, no cookie is used."""
        if not self._has_token:
            super().check_xsrf_cookie()

    def check_may_hold(self) -> None:
        """Refuse callers who may not set and release holds."""
        if not self.caller.may_hold:
            raise web.HTTPError(403, f"only users with the Hub scope `{HOLD_SCOPE}` may set and release holds")

    @property
    def _has_token(self) -> bool:
        return bool(self.parts.hub_auth.get_token(self, in_cookie=False))

    def json_object(self) -> JsonObject:
        """Return the request's body, a JSON object."""
        try:
            return read_json_object(self.request.body)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from None

    def finish_json(self, value: Mapping[str, Any]) -> None:
        """Answer with JSON."""
        self.set_header("Content-Type", "application/json")
        self.finish(answer_text(value))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with the error's message, and its code as `reason`."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, AgentBoxError):
            self.set_status(status_of_error(error))
            self.finish_json({"message": client_message(error), "reason": error.code})
        else:
            message = error.log_message if isinstance(error, web.HTTPError) and status_code < 500 else None
            if status_code == HTTPStatus.TOO_MANY_REQUESTS:
                self.set_header("Retry-After", str(ceil(LONGEST)))
            self.finish_json({"message": message or self._reason, "reason": None})


class PageHandler(HubServiceHandler):
    """Base of the pages, for people who log in to the Hub with a browser.

    Attributes
    ----------
    asks_anew : bool
        Whether the Hub is asked about the person each time, even for a request that only reads.
    back : tuple of str
        The page to which errors link, below the service's address, and its title.
    failed : str
        The heading of errors.
    """

    asks_anew = False
    back = APPROVALS
    failed = FAILED

    async def prepare(self) -> None:
        """Identify the person, or redirect them to the Hub's login page."""
        is_get = self.request.method in ("GET", "HEAD")
        caller = await self.caller_by_cookie(use_cache=is_get and not self.asks_anew)
        if caller is not None:
            await self.take_turn(caller)
            self.caller = caller
            self.xsrf_token  # noqa: B018  # sets the cookie
        elif is_get:  # the Hub refuses to log in people who may not use this service
            self.redirect(self.get_login_url())
        else:
            raise web.HTTPError(403, _OUT_OF_DATE)

    def check_xsrf_cookie(self) -> None:
        """Refuse forms of other sites, and of pages that were opened before the last login."""
        try:
            super().check_xsrf_cookie()
        except web.HTTPError as error:
            log.info("%s %s: %s", self.request.method, self.request.path, error.log_message)
            raise web.HTTPError(403, _OUT_OF_DATE) from None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Show the error."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, AgentBoxError):
            status_code = status_of_error(error)
            self.set_status(status_code)
        is_ours = isinstance(error, AgentBoxError) or (isinstance(error, web.HTTPError) and status_code < 500)
        message = client_message(error) if isinstance(error, AgentBoxError) else getattr(error, "log_message", None)
        self.render(
            "error.html",
            prefix=self.parts.prefix,
            back=self.back,
            failed=self.failed,
            status=status_code,
            message=_sentence(visible(message if is_ours and message else self._reason)),
        )


class NoPageHandler(PageHandler):
    """Answers requests for pages that do not exist."""

    async def prepare(self) -> None:
        """Answer 404, to anyone."""
        raise web.HTTPError(404, "there is no such page")

    def check_xsrf_cookie(self) -> None:
        """Skip the check: nothing can be changed here."""


def _sentence(text: str) -> str:
    """Return an error's message as a sentence."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def log_error(request: HTTPServerRequest, error: BaseException) -> None:
    """Log why a request failed, without its query, which may contain an OAuth code; tornado would log all of it."""
    if not isinstance(error, web.HTTPError):
        log.error("%s %s failed", request.method, request.path, exc_info=error)
    elif error.log_message:
        said = one_line(error.get_message() or "")  # it may repeat a part of the query
        log.warning("%s %s %d: %s", request.method, request.path, error.status_code, said)


def client_message(error: AgentBoxError) -> str:
    """Return an error's message for users. It does not name the database; the log does."""
    if isinstance(error, StorageError) and not isinstance(error, AuditError):
        return "the service's database cannot be used at the moment. Try again later; the service's log says why."
    return str(error)


def status_of_error(error: AgentBoxError) -> int:
    """Return an error's HTTP status code. `NotAnApproverError` is known only here: no other server has approvers."""
    return 403 if isinstance(error, NotAnApproverError) else status_code_of(error)
