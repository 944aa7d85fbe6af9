"""REST: sign-ins to MCP servers, and their providers' redirects."""

from __future__ import annotations

import os
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import ensure_async
from tornado import web

from jupyter_agentbox.core.changes import Change
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import AgentBoxError, InvalidRequestError
from jupyter_agentbox.services.handlers import status_code_of
from jupyter_agentbox.services.reviewers import reviewer_of

from .handlers import AUTH_RESOURCE, ServersAPIHandler
from .redirects import KnownAddresses
from .sign_in_cookies import SignInCookie, read_answer

_LONGEST_ADDRESS: Final = 8_000
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 36rem; padding: 0 1rem; }}
:root {{ color-scheme: light dark; }}</style>
<h1>{title}</h1>
<p>{text}</p>
<p>You can close this tab and go back to JupyterLab.</p>
</html>
"""


class SignInBaseHandler(ServersAPIHandler):
    """Base of the handlers that begin and end a sign-in."""

    async def check_person(self) -> Reviewer:
        """Return the client. A sign-in decides as whom tools act: whoever may decide may sign in, and nobody else."""
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        reviewer.check(self.services.decisions.decide_with)
        return reviewer

    @property
    def cookie(self) -> SignInCookie:
        """The browser's cookie for a sign-in."""
        return SignInCookie(prefix="jupyter-agentbox-sign-in", path=f"{self.base_url}jupyter-agentbox/oauth/callback")


class SignInHandler(SignInBaseHandler):
    """A person's sign-in to one server."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Begin a sign-in; return the provider's page, which only a person opens."""
        body = self.json_object()
        page = body.get("page")
        if not isinstance(page, str) or len(page) > _LONGEST_ADDRESS or len(body) > 1:
            raise InvalidRequestError("the body must have a `page`, the address of this server, and nothing else")
        person = await self.check_person()
        redirect = self._addresses().redirect_for(page, name)
        begun = await self.services.sign_ins.begin(name, person=person.name, redirect=redirect)
        self.cookie.set(self, begun, secure=redirect.startswith("https:"))
        self.finish_json({"address": begun.address, "host": urlsplit(begun.address).netloc, "redirect": redirect})

    @web.authenticated
    @authorized
    async def delete(self, name: str) -> None:
        """Sign out: forget the tokens, and stop the server."""
        person = await self.check_person()
        await self.services.sign_ins.sign_out(name)
        self.log.info("jupyter_agentbox: %s signed out of the MCP server %s", person.name, name)
        await self.services.changes.note(Change.SIGNED_OUT, {"name": name}, by=person)
        self.set_status(204)
        self.finish()

    def _addresses(self) -> KnownAddresses:
        server: Any = self.serverapp
        public = (server.custom_display_url, os.environ.get("JUPYTERHUB_PUBLIC_URL"))
        forwarded = self.request.headers.get("X-Forwarded-Host") if server.trust_xheaders else None
        return KnownAddresses(
            base_url=self.base_url,
            hosts=tuple(host for host in (self.request.host, forwarded) if host),
            public=tuple(url for url in public if url),
            origin=self.request.headers.get("Origin"),
            allow_origin=self.allow_origin,
            allow_origin_pat=self.allow_origin_pat or "",
        )


class SignInCancelHandler(SignInBaseHandler):
    """A sign-in in progress."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        """Abandon the sign-in; the tokens of a completed one remain."""
        person = await self.check_person()
        self.services.sign_ins.cancel(name, person=person.name)
        self.set_status(204)
        self.finish()


class SignInCallbackHandler(SignInBaseHandler):
    """The redirect from a provider.

    The browser arrives from a page of the provider, so it is a cross-site GET without `_xsrf`. Instead, three things
    are required: a state known only to the provider's page, the login of the person who began, and a cookie of the
    browser in which they did.
    """

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        """Process the provider's answer, and report the outcome."""
        answer = read_answer(self)
        allowed = self.authorizer.is_authorized(self, self.current_user, "write", AUTH_RESOURCE)  # more than reading
        if not await ensure_async(allowed):
            raise web.HTTPError(403)
        person = await self.check_person()
        key = self.cookie.read(self, answer.state)
        await self.services.sign_ins.finish(name, answer, person=person.name, browser_key=key)
        self.cookie.clear(self, answer.state)
        self.log.info("jupyter_agentbox: %s signed in to the MCP server %s", person.name, name)
        await self.services.changes.note(Change.SIGNED_IN, {"name": name}, by=person)
        self._finish_page("You are signed in", f"Tools of the MCP server “{name}” now act as you.")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Respond with a page, because a person sees it."""
        error = self.error_in(kwargs)
        if not isinstance(error, AgentBoxError):
            super().write_error(status_code, **kwargs)
            return
        self.set_status(status_code_of(error))
        self._finish_page("You are not signed in", str(error))

    def _finish_page(self, title: str, text: str) -> None:
        self.set_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        page = _PAGE.format(title=escape(title), text=escape(visible(text)))
        self.finish(page, set_content_type="text/html; charset=utf-8")


_NAME: Final = r"(?P<name>[^/]+)"

default_handlers = [
    (rf"/jupyter-agentbox/servers/{_NAME}/sign-in/?", SignInHandler),
    (rf"/jupyter-agentbox/servers/{_NAME}/sign-in/cancel/?", SignInCancelHandler),
    (rf"/jupyter-agentbox/oauth/callback/{_NAME}/?", SignInCallbackHandler),
]
