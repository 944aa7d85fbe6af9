"""What a replica answers while another one holds the database: that it lives, is not ready, and when to come back."""

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
from .handlers import HubServiceHandler

log = logging.getLogger(__name__)

#: Seconds after which callers shall try again.
RETRY_AFTER: Final = 5
#: The key of the function that says since when another replica holds the database, in the web application's settings.
_SINCE_KEY: Final = "agentbox_hub_other_since"


class Front(Router):
    """Lets one application after another answer at the same port.

    Parameters
    ----------
    application : web.Application
        The first. What was asked of it is answered by it, whatever comes next.
    """

    def __init__(self, application: web.Application) -> None:
        self.application = application

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate:
        """Return what answers a request: the application of this moment."""
        return self.application.find_handler(request, **kwargs)


def make_standby_application(prefix: str, other_since: Callable[[], str | None]) -> web.Application:
    """Return the web application of a replica that waits.

    Parameters
    ----------
    prefix : str
        Of the service, with a slash at its end.
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
    """Log what was asked, as what it is: nothing is wrong."""
    log.debug("%s %s %d, standing by", handler.request.method, handler.request.path, handler.get_status())


class StandbyReadyHandler(HubServiceHandler):
    """Whether calls can run: not here."""

    def get(self) -> None:
        """Say why not."""
        since = self.settings[_SINCE_KEY]()
        held = f"another replica has held the database since {since}"
        why = "this replica waits for the database" if since is None else held
        self.set_status(503)
        self.set_header("Retry-After", str(RETRY_AFTER))
        self.finish({"status": why, "database_held_since": since})


class StandbyHandler(HubServiceHandler):
    """All that only the replica with the database can answer."""

    def initialize(self, prefix: str) -> None:
        """Take where the service is."""
        self._prefix = prefix

    def check_xsrf_cookie(self) -> None:
        """Check nothing: nothing can be changed here."""

    def prepare(self) -> None:
        """Say, before anything is read, that it is done elsewhere, and when to try again."""
        message = "this replica of the service stands by, and did nothing: try again in some seconds"
        self.set_status(503)
        self.set_header("Retry-After", str(RETRY_AFTER))
        if "text/html" in self.request.headers.get("Accept", ""):
            self.render("error.html", prefix=self._prefix, status=503, message=message)
        else:
            self.set_header("Content-Type", "application/json")
            self.finish(answer_text({"message": message, "reason": "standby"}))
