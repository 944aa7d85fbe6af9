"""The answers of a replica while another one holds the database: alive, not ready, and when to try again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Final

from tornado import web
from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.routing import Router

from jupyter_agentbox.services.json_answers import answer_text

from .api_handlers import LiveHandler
from .handlers import APPROVALS, FAILED, HubServiceHandler

log = logging.getLogger(__name__)

#: Seconds after which callers should try again.
RETRY_AFTER: Final = 5
#: The key, in the web application's settings, of the function that returns since when another holds the database.
_SINCE_KEY: Final = "agentbox_hub_other_since"


class Front(Router):
    """Serves one application after another on the same port.

    Parameters
    ----------
    application : web.Application
        The first application. It finishes the requests that it was given, even after it has been replaced.
    """

    def __init__(self, application: web.Application) -> None:
        self.application = application

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate:
        """Return the current application's handler for a request."""
        return self.application.find_handler(request, **kwargs)


def make_standby_application(prefix: str, other_since: Callable[[], str | None]) -> web.Application:
    """Return the web application of a replica on standby.

    Parameters
    ----------
    prefix : str
        The service's prefix, with a slash at the end.
    other_since : callable
        Returns since when another replica holds the database; ``None`` if that is unknown.
    """
    files = Path(str(resources.files("jupyter_agentbox.hub")))
    application = web.Application(
        [(rf"{prefix}health/live", LiveHandler), (rf"{prefix}health/ready", StandbyReadyHandler)],
        template_path=str(files / "templates"),
        static_path=str(files / "static"),
        static_url_prefix=f"{prefix}static/",
        default_handler_class=StandbyHandler,
        default_handler_args={"prefix": prefix},
        log_function=_log_request,
    )
    application.settings[_SINCE_KEY] = other_since
    return application


def _log_request(handler: web.RequestHandler) -> None:
    """Log a request at the debug level: nothing is wrong."""
    log.debug("%s %s %d, standing by", handler.request.method, handler.request.path, handler.get_status())


class StandbyReadyHandler(HubServiceHandler):
    """Whether calls can run: not on this replica."""

    def get(self) -> None:
        """Answer 503, with the reason."""
        since = self.settings[_SINCE_KEY]()
        held = f"another replica has held the database since {since}"
        why = "this replica waits for the database" if since is None else held
        self.set_status(503)
        self.set_header("Retry-After", str(RETRY_AFTER))
        self.finish({"status": why, "database_held_since": since})


class StandbyHandler(HubServiceHandler):
    """Answers everything that needs the database."""

    def initialize(self, prefix: str) -> None:
        """Store the service's prefix."""
        self._prefix = prefix

    def check_xsrf_cookie(self) -> None:
        """Skip the check: nothing can be changed here."""

    def prepare(self) -> None:
        """Answer 503 before anything is read, with the time to try again."""
        message = "this replica of the service is on standby and did nothing: try again in a few seconds"
        self.set_status(503)
        self.set_header("Retry-After", str(RETRY_AFTER))
        if "text/html" in self.request.headers.get("Accept", ""):
            self.render("error.html", prefix=self._prefix, back=APPROVALS, failed=FAILED, status=503, message=message)
        else:
            self.set_header("Content-Type", "application/json")
            self.finish(answer_text({"message": message, "reason": "standby"}))
