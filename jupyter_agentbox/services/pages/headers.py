"""The Content-Security-Policy header for pages of a server with sandboxed kernels."""

from __future__ import annotations

from typing import Final

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import Application, OutputTransform

from .manager import PageManager

HEADER: Final = "Content-Security-Policy"

#: Media types that browsers display as pages, with markup that can load resources.
_PAGES: Final = ("text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml")
#: The cached page is shown again.
_NOT_MODIFIED: Final = 304


def protect_pages(application: Application, pages: PageManager) -> None:
    """Add the policy to every page that an application serves, from any extension's handler.

    The header is added and replaces none: browsers enforce all of a page's policies. So policies set by
    `ServerApp.tornado_settings`, a Hub or a proxy still apply.
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
                # A policy does not cover DNS prefetching of links' host names.
                headers["X-DNS-Prefetch-Control"] = "off"
            return status_code, headers, chunk

    application.add_transform(PolicyHeader)
