"""Answers requests as a thread's approval mode says. The rules of the site and the user have been asked before."""

from __future__ import annotations

from contextlib import suppress

from jupyter_agentbox.core.threads import ApprovalMode
from jupyter_agentbox.exceptions import ApprovalError

from .ports import PendingApproval

#: What the model, and the record, are told where nobody is to be asked.
_NOBODY_IS_ASKED = "nobody is asked in this thread: its approval mode is `deny_all`, and no rule allows it"


class Approver:
    """Answers what a mode lets it answer.

    Parameters
    ----------
    mode : ApprovalMode
        The thread's mode.
    """

    def __init__(self, mode: ApprovalMode) -> None:
        self._mode = mode

    async def answer(self, request: PendingApproval) -> bool:
        """Answer a request; return whether it was answered. If not, a person has to."""
        if self._mode is not ApprovalMode.DENY_ALL:
            return False
        with suppress(ApprovalError):  # somebody was quicker, or it was withdrawn
            await request.reject(_NOBODY_IS_ASKED)
        return True
