"""The Content-Security-Policy header of the pages of a server that has sandboxed kernels."""

from __future__ import annotations

from typing import Final

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import Application, OutputTransform

from .manager import PageManager

HEADER: Final = "Content-Security-Policy"

#: What a browser shows as a page, in which markup can load things.
_PAGES: Final = ("text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml")
#: What it kept of a page is shown again.
_NOT_MODIFIED: Final = 304


def protect_pages(application: Application, pages: PageManager) -> None:
    """Add the policy to every page that an application serves, whichever extension's handler makes it.

    It is one more header and replaces none: browsers hold a page to all policies that it has. So it is kept where
    `ServerApp.tornado_settings` or a Hub sets a policy, and where a proxy adds one.
    """

    class PolicyHeader(OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            self._host = request.host

        def transform_first_chunk(
            self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
        ) -> tuple[int, HTTPHeaders, bytes]:
            del finishing
            kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
            policy = pages.policy_for(self._host) if status_code == _NOT_MODIFIED or kind in _PAGES else None
            if policy is not None:
                headers.add(HEADER, policy)
                # Names of hosts in links are no loads: a policy says nothing about looking them up.
                headers["X-DNS-Prefetch-Control"] = "off"
            return status_code, headers, chunk

    application.add_transform(PolicyHeader)
