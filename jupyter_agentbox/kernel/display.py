"""The card under a cell: shown while a person is asked, then replaced by one line."""

from __future__ import annotations

import html
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.trusted_imports import TrustedImports

from .call_outputs import CallOutput
from .cells import Cell
from .transport import Transport

if TYPE_CHECKING:
    from .card import ApprovalCard

log = logging.getLogger(__name__)


class Card:
    """The card of one request in an output.

    Parameters
    ----------
    output : CallOutput
        The output with the card.
    what : str
        ``server.tool``, untrusted.
    request_id : str
        The approval request.
    cell : Cell
        The output's cell.
    """

    def __init__(self, output: CallOutput, *, what: str, request_id: str, cell: Cell) -> None:
        self.request_id = request_id
        self._output = output
        self._what = one_line(what)
        self._cell = cell
        self._widget: ApprovalCard | None = None

    def show(self, url: str) -> None:
        """Show what waits and where to decide.

        Parameters
        ----------
        url : str
            The server's page for decisions, or on a Hub only its path; empty if unknown.
        """
        self._show("is waiting for approval. Allow, edit or reject it", url)

    def show_question(self, url: str) -> None:
        """Show that the running call's server waits for an answer, the user's or another's, and where to give it.

        Parameters
        ----------
        url : str
            As for `show`.
        """
        self._show("is running, and its server is waiting for an answer, perhaps yours. Look", url)

    def _show(self, what: str, url: str) -> None:
        where = one_line(url) if _is_link(url) else ""
        host = "" if "://" in where else " on your JupyterHub"
        place = f"at {where}{host}" if where else "in JupyterLab's panel of approval requests"
        link = f'at <a href="{html.escape(where)}" target="_blank" rel="noopener">{html.escape(where)}</a>{host}'
        self._output.put(
            self.request_id,
            f"{self._what} {what} {place}.",
            f"<b>{html.escape(self._what)}</b> {what} {link if where else place}.",
        )
        # The output contains the request, not the widget's view: a page without the lab extension would prefer the view
        # to the text, and show an error.
        if self._cell.shows_widgets and self._output.has_few:  # every page is notified of every widget
            self._widget = _new_widget(self.request_id)

    def finish(self, outcome: str) -> None:
        """Replace the card by a description and one line, which remain in the saved notebook."""
        self.finish_with(f"{self._what}: {one_line(outcome, 1000)}")

    def finish_with(self, line: str) -> None:
        """Replace the card by one line, which remains in the saved notebook."""
        self._output.put(self.request_id, line, html.escape(line))
        if self._widget is not None:
            self._widget.close()


def _is_link(url: str) -> bool:
    """Whether it is a page's URL, or a path on the same host."""
    return url.startswith(("http://", "https://")) or (url.startswith("/") and not url.startswith("//"))


def say(transport: Transport, line: str, cell: Cell) -> None:
    """Print a line under a cell, for the author of its code, even if the code redirects its output."""
    transport.publish("stream", {"name": "stdout", "text": f"{line}\n"}, cell)


def attempt(step: Callable[..., None], *arguments: object) -> None:
    """Run a display function; log errors and continue, because the call does not depend on its card.

    An interrupt is deferred: midway it would leave an incomplete card, or a partial import of ipywidgets.
    """
    with _interrupts_held():
        try:
            step(*arguments)
        except Exception:  # whatever a front end's library raises
            log.warning("the card of an approval request could not be shown", exc_info=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    handle = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handle):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handle)
        if held:
            handle(*held[0])


def _new_widget(request_id: str) -> ApprovalCard | None:
    with TrustedImports():  # the cell did not import ipywidgets
        try:
            from .card import ApprovalCard  # noqa: PLC0415  # ipywidgets is slow to import, and may be missing
        except ImportError:
            return None
        return ApprovalCard(request_id=request_id)
