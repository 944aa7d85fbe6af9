"""Relays the progress and log messages of central tools to the client of the user whose call it is."""

from __future__ import annotations

from jupyter_agentbox.core.tools import LogMessage, Progress

from .client_log_levels import known_level
from .open_calls import OpenCalls


class ActivityRelay:
    """Tells the caller of a call what its tool reports; an `ActivityListener`. Nothing of it is kept or logged here.

    Parameters
    ----------
    open_calls : OpenCalls
        The calls, with the connections of their callers.
    """

    def __init__(self, open_calls: OpenCalls) -> None:
        self._open_calls = open_calls

    def progressed(self, request_id: str, progress: Progress) -> None:
        """Send progress to a caller who wants notifications of it."""
        call = self._open_calls.running(request_id)
        if call is not None and call.progress_token is not None:
            call.messages.progress(call.progress_token, progress)

    def logged(self, request_id: str, message: LogMessage) -> None:
        """Send a log message of a level that the caller's session wants."""
        call = self._open_calls.running(request_id)
        level = known_level(message.level)
        if call is not None and self._open_calls.wants(call, level):
            call.messages.log(level, message.logger, message.text)
