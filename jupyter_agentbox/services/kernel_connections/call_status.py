"""Status messages to a kernel about its call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.protocol import messages


class CallStatusSender:
    """Tells a kernel that its call is pending or running. As a context manager, it sends nothing after exit.

    Parameters
    ----------
    message_id : str
        The kernel's id of the call.
    send : callable
        Sends a message to the kernel.
    delay : float
        Delay in seconds, within which a newer status replaces an older one; 0 to send at once.
    """

    def __init__(self, message_id: str, send: Callable[[messages.FromServer], None], *, delay: float) -> None:
        self._message_id = message_id
        self._send = send
        self._delay = delay
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._forget()

    def waiting(self, request: ApprovalRequest) -> None:
        """Report that the call waits for a decision."""
        expires_at = json_time(request.expires_at)
        self._tell(messages.Waiting(id=self._message_id, request_id=request.id, expires_at=expires_at))

    def running(self, request: ApprovalRequest) -> None:
        """Report that the call is running."""
        self._tell(messages.Running(id=self._message_id, request_id=request.id))

    def asked(self, request: ApprovalRequest) -> None:
        """Report that the call's server asks a person something."""
        self._tell(messages.Asked(id=self._message_id, request_id=request.id))

    def _tell(self, message: messages.Waiting | messages.Running | messages.Asked) -> None:
        self._forget()
        if self._delay:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._send, message)
        else:
            self._send(message)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
