"""The effect of a thread's approval mode on its code and on the code's calls."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.model_reviews import reviewing_model
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.ports import CallReviewer
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.core.threads import ApprovalMode
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import NeedsPersonError
from jupyter_agentbox.services.approvals.verdicts import Answered, Verdict

log = logging.getLogger(__name__)

#: How long a model may take to review a call, in seconds; then a person is asked.
REVIEW_SECONDS: Final = 60.0

#: How many threads' modes are kept.
MOST_THREADS: Final = 10_000

#: Reason for refusing a call that would ask, shown to the code and the model.
NOBODY_IS_ASKED: Final = "nobody is asked in this thread: its approval mode is `deny_all`, and no rule allows it"


@dataclass(frozen=True, slots=True)
class _ThreadMode:
    mode: ApprovalMode
    reviewer: CallReviewer | None


class ThreadModes:
    """Holds the approval mode of each agent's thread, and applies it to the thread's calls.

    A mode comes after all rules: it can refuse what would ask, or have a model answer if a rule permits that. Calls
    from outside threads and from unknown ones ask a person, so only other modes are kept, for a limited number of
    threads: a call that outlives its turn by thousands of threads asks a person.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[str, _ThreadMode] = OrderedDict()

    def set(self, thread_id: str, mode: ApprovalMode, *, reviewer: CallReviewer | None = None) -> None:
        """Set the mode of a thread, from now on.

        Parameters
        ----------
        thread_id : str
            The thread.
        mode : ApprovalMode
            Its mode.
        reviewer : CallReviewer, optional
            Reviews calls if the mode is ``auto_review``; without one a person is asked.
        """
        self._threads.pop(thread_id, None)
        if mode is ApprovalMode.DENY_ALL or reviewer is not None:
            self._threads[thread_id] = _ThreadMode(mode, reviewer)
        while len(self._threads) > MOST_THREADS:
            self._threads.popitem(last=False)

    def apply(self, call: ToolCall, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation of a call in its thread, given the rules' evaluation."""
        known = self._known(call)
        if known is None or known.mode is not ApprovalMode.DENY_ALL:
            return evaluation
        refusal = Rule.of_tool(call, Effect.DENY, layer=Layer.THREAD, reason=NOBODY_IS_ASKED)
        return evaluation.without_asking(refusal)

    async def review(
        self, call: ToolCall, tool: ToolDescription, evaluation: Evaluation, *, decide_with: DecideWith
    ) -> Answered | None:
        """Return a model's answer to a call; ``None`` if a person must decide, as whenever in doubt.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription
            The tool, as its server describes it.
        evaluation : Evaluation
            The rules' evaluation. If no rule lets a model allow the call, no model is asked.
        decide_with : DecideWith
            The credentials required to decide.
        """
        known = self._known(call)
        if known is None or known.mode is not ApprovalMode.AUTO_REVIEW or known.reviewer is None:
            return None
        if evaluation.effect is not Effect.ASK or not evaluation.model_may_allow:
            return None
        by = reviewing_model(known.reviewer.name)
        try:
            by.check(decide_with)
            async with asyncio.timeout(REVIEW_SECONDS):
                review = await known.reviewer.review(call, tool)
        except NeedsPersonError:
            return None
        except Exception as error:  # noqa: BLE001  # its text may have a key or a prompt, which no log may
            # A boundary: whatever goes wrong with a model, a person decides.
            log.warning("%s could not review a call of `%s`: %s", by.name, call.qualified_name, type(error).__name__)
            return None
        if review.answer is None:
            return None
        return Verdict(answer=review.answer, digest=call.digest, reason=review.rationale), by

    def _known(self, call: ToolCall) -> _ThreadMode | None:
        thread_id = call.origin.thread_id
        return None if thread_id is None else self._threads.get(thread_id)
