"""Serving of raw files (``/files/``, downloads) without following links that a sandboxed kernel may have created."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from jupyter_server.base.handlers import AuthenticatedFileHandler
from tornado.routing import Rule, RuleRouter
from tornado.web import Application, HTTPError

from .kernel_directories import KernelDirectories
from .refusals import as_http_error

_NOT_FOUND = 404


def serve_no_links(application: Application, directories: KernelDirectories) -> None:
    """Prevent the file handlers from following links where a sandboxed kernel can write.

    Parameters
    ----------
    application : Application
        The server's. Only handlers that already exist are changed.
    directories : KernelDirectories
        Where kernels can write.
    """
    for rule in _rules(application.default_router):
        if isinstance(rule.target, type) and issubclass(rule.target, AuthenticatedFileHandler):
            safe: Any = type(
                f"Safe{rule.target.__name__}", (_SafeFileHandler, rule.target), {"directories": directories}
            )
            rule.target = safe


def _rules(router: RuleRouter) -> Iterator[Rule]:
    for rule in router.rules:
        if isinstance(rule.target, RuleRouter):
            yield from _rules(rule.target)
        else:
            yield rule


class _SafeFileHandler(AuthenticatedFileHandler):
    """Opens a file that a kernel can replace once, and serves what it opened."""

    directories: KernelDirectories
    _called: str | None = None

    def initialize(self, *arguments: Any, **options: Any) -> None:
        self._open = ExitStack()
        super().initialize(*arguments, **options)

    def validate_absolute_path(self, root: str, absolute_path: str) -> str:
        # The requested path: the one that Tornado returns has no links any more, or is `None` for a redirect.
        found = self.directories.find(absolute_path)
        path = super().validate_absolute_path(root, absolute_path)
        if found is None or path is None:
            return path
        self._called = absolute_path
        try:
            with as_http_error(absolute_path):
                file = self._open.enter_context(found.reading())
        except FileNotFoundError as error:
            raise HTTPError(_NOT_FOUND) from error
        return f"/dev/fd/{file.fileno()}"

    def get_content_type(self) -> str:
        opened = self.absolute_path
        self.absolute_path = self._called or opened  # the type is derived from the name
        try:
            return super().get_content_type()
        finally:
            self.absolute_path = opened

    def on_finish(self) -> None:
        self._open.close()
        super().on_finish()
