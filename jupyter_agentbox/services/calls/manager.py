"""Runs a tool call from start to finish: describe, check, evaluate, ask, run once, record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from jupyter_agentbox.core.approvals import ApprovalRequest, Lapse, OutcomeState, Status, reason_for
from jupyter_agentbox.core.calls import ToolCall, check_arguments, is_long
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.local_calls import left_to_hub, needs_approvers
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer
from jupyter_agentbox.core.ports import ArgumentChecker, CallListener, SecondPersons, ToolCaller
from jupyter_agentbox.core.reviewers import DecideWith, ReviewerKind, Via
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    ApprovalError,
    ApprovalExpiredError,
    InvalidTransitionError,
    NobodyToAskError,
    StorageError,
    ToolCallRejectedError,
    ToolServerError,
    UnknownApprovalError,
)
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.running_calls import RunningCalls
from jupyter_agentbox.services.grants.manager import GrantSpentError
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.services.questions.manager import QuestionManager

from .running import RunningCall
from .thread_modes import ThreadModes

log = logging.getLogger(__name__)

Notify = Callable[[ApprovalRequest], None]

#: Maximum length of a tool's error text in the record, in characters.
ERROR_TEXT_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A completed call.

    Parameters
    ----------
    request : ApprovalRequest
        The request with its decision, as the call started; the end is stored separately.
    result : ToolResult
        The tool's result.
    """

    request: ApprovalRequest
    result: ToolResult


class CallManager:
    """Puts the policy and a person between a call and its effect.

    Parameters
    ----------
    approvals : ApprovalManager
        Manages requests and their decisions.
    policies : PolicyManager
        Evaluates calls.
    tools : ToolCaller
        Calls the tools.
    checker : ArgumentChecker
        Validates arguments before a person is asked.
    modes : ThreadModes
        The approval modes of agents' threads.
    questions : QuestionManager
        Asks people the servers' questions.
    running_calls : RunningCalls
        Shows the progress and log messages of running calls.
    decide_with : DecideWith
        The credentials required to decide.
    second_persons : SecondPersons, optional
        Asks the approvers that rules name. Without it, they are asked here: this is the Hub service.
    """

    def __init__(
        self,
        *,
        approvals: ApprovalManager,
        policies: PolicyManager,
        tools: ToolCaller,
        checker: ArgumentChecker,
        modes: ThreadModes,
        questions: QuestionManager,
        running_calls: RunningCalls,
        decide_with: DecideWith = DecideWith.ANY,
        second_persons: SecondPersons | None = None,
    ) -> None:
        self._second_persons = second_persons
        self._approvals = approvals
        self._policies = policies
        self._tools = tools
        self._checker = checker
        self._modes = modes
        self._questions = questions
        self._running_calls = running_calls
        self._decide_with = decide_with

    async def run(
        self,
        call: ToolCall,
        *,
        on_waiting: Notify,
        on_running: Notify,
        on_asked: Notify = lambda _: None,
        is_wanted: Callable[[], bool] = lambda: True,
        own: ToolCaller | None = None,
        floor: Evaluation | None = None,
        asked_at: datetime | None = None,
    ) -> FinishedCall:
        """Run the call once, if it may run. Cancelling the task withdraws the request or cancels the tool.

        The call is stored as *running* before the tool runs, with the write that approves it (a rule's in `open`, a
        person's in `decide`), which is never undone. That is why a call runs at most once. Where requests outlive the
        process, a person's approval does not start the call: this does, with a write of its own. The end is stored
        afterwards, while the result is already being returned.

        Parameters
        ----------
        call : ToolCall
            The call to run.
        on_waiting : callable
            Called with the request if a person is asked.
        on_running : callable
            Called with the request when the call runs.
        on_asked : callable, optional
            Called with the request if the tool's server asks a person something.
        is_wanted : callable
            Returns whether the caller is still there. Checked before asking a person, and before running the tool.
        own : ToolCaller, optional
            Calls a tool that code cannot name: one that only this caller can reach.
        floor : Evaluation, optional
            Minimum evaluation: the stricter of it and the policy's applies.
        asked_at : datetime, optional
            Time of the call, if earlier than now, by the clock used for requests.

        Raises
        ------
        ToolArgumentsError
            The arguments are invalid; nobody was asked.
        ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError
            It was not approved, here or at the Hub service; it did not run.
        ToolServerError, ToolCallInterruptedError
            It was approved but could not run, or was cut off.
        StorageError
            A step could not be stored. If before the decision or the start, the call did not run.
        """
        tools = own or self._tools
        asked_at = asked_at or self._approvals.now()
        await self._check_arguments(call)
        tool = await tools.describe(call.server, call.tool)
        await self._checker.check(tool, call.arguments)
        if not is_wanted():
            raise _nobody_there(call)
        request = await self._open(call, tool, floor, asked_at)
        return await self._run_opened(request, tools, on_waiting, on_running, on_asked, is_wanted)

    async def resume(
        self, request: ApprovalRequest, *, on_waiting: Notify, on_running: Notify, own: ToolCaller | None = None
    ) -> FinishedCall:
        """Resume a call that had not run when its process ended, for its returned caller.

        Parameters
        ----------
        request : ApprovalRequest
            The request from `KeptRequests.take`.
        on_waiting, on_running, own
            As for `run`.

        Raises
        ------
        ApprovalError, ToolServerError, ToolCallInterruptedError, StorageError
            As for `run`.
        """
        if request.has_not_run:
            raise _too_late_back(request)
        if not request.is_open and request.outcome is not None:
            raise _answer_is_gone(request)
        return await self._run_opened(request, own or self._tools, on_waiting, on_running)

    async def _run_opened(
        self,
        request: ApprovalRequest,
        tools: ToolCaller,
        on_waiting: Notify,
        on_running: Notify,
        on_asked: Notify = lambda _: None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> FinishedCall:
        """Wait for the decision, and run an approved call."""
        call = request.call
        request = await self._started(await self._settled(request, on_waiting))
        if request.outcome_state is not OutcomeState.RUNNING:
            raise _refusal(request)
        if not is_wanted():
            self._keep_end(request.id, self._approvals.record_not_run(request.id))
            raise _nobody_there(call, request.id)
        on_running(request)
        return FinishedCall(request=request, result=await self._call_tool(request, tools, on_asked))

    async def _open(
        self, call: ToolCall, tool: ToolDescription, floor: Evaluation | None, asked_at: datetime
    ) -> ApprovalRequest:
        """Open the request by rules, grants and the thread's mode."""
        while True:
            evaluation = self._policies.evaluate(call, tool, is_current=True)
            if floor is not None:
                evaluation = evaluation.at_least(floor)
            evaluation = self._modes.apply(call, evaluation)
            if self._second_persons is not None:
                evaluation = left_to_hub(evaluation)
            # Before a model reviews the call: meanwhile its server could be exchanged for one with the same tool.
            is_asked = evaluation.effect is Effect.ASK
            trust_key = self._approvals.requests.server_key(call.server) if is_asked else None
            answered = await self._modes.review(call, tool, evaluation, decide_with=self._decide_with)
            try:
                return await self._approvals.open(
                    call, tool, evaluation, answered, asked_at=asked_at, trust_key=trust_key
                )
            except GrantSpentError:
                log.debug("a grant ended while `%s` was on its way", call.qualified_name)

    @staticmethod
    async def _check_arguments(call: ToolCall) -> None:
        if is_long(call.arguments):
            await asyncio.to_thread(check_arguments, call.arguments)
        else:
            check_arguments(call.arguments)

    async def _settled(self, request: ApprovalRequest, on_waiting: Notify) -> ApprovalRequest:
        if request.status is not Status.PENDING:
            return request
        on_waiting(request)
        try:
            return await self._approvals.settled(request.id)
        except (asyncio.CancelledError, StorageError):
            if self._approvals.holds(request.id):  # otherwise it ended, or waits for another process
                await asyncio.shield(self._withdraw(request.id))
            raise

    async def _withdraw(self, request_id: str) -> None:
        try:
            await self._end(request_id)
        except (StorageError, UnknownApprovalError):
            log.exception("the withdrawal of request %s could not be stored", request_id)
            self._approvals.abandon(request_id)

    async def _end(self, request_id: str) -> None:
        try:
            await self._approvals.lapse(request_id, Lapse.WITHDRAWN)
        except InvalidTransitionError:
            # It was decided at the same moment. If it was approved, record that it will not run.
            with suppress(InvalidTransitionError):
                await self._approvals.record_not_run(request_id)

    async def _started(self, request: ApprovalRequest) -> ApprovalRequest:
        """Store a call as running whose approval did not."""
        if request.status is not Status.APPROVED or request.outcome is not None:
            return request
        try:
            return await self._approvals.start(request.id)
        except (asyncio.CancelledError, StorageError):
            if self._approvals.holds(request.id):  # otherwise it waits for another process
                self._keep_end(request.id, self._approvals.record_not_run(request.id))
            raise

    async def _call_tool(self, request: ApprovalRequest, tools: ToolCaller, on_asked: Notify) -> ToolResult:
        """Run the tool of a request that is stored as running, and record the outcome."""
        try:
            listener = RunningCall(
                request, running_calls=self._running_calls, questions=self._questions, on_asked=on_asked
            )
            result = await self._result_of(request, tools, listener)
        except asyncio.CancelledError:
            self._finish(request, OutcomeState.CANCELLED)
            raise
        except AgentBoxError as error:
            self._finish(request, OutcomeState.FAILED, str(error))
            error.request_id = request.id
            raise
        except Exception as error:
            # A boundary: the end must be recorded, whatever an adapter raises.
            self._finish(request, OutcomeState.FAILED, type(error).__name__)
            raise
        state = OutcomeState.FAILED if result.is_error else OutcomeState.SUCCEEDED
        self._finish(request, state, result.text if result.is_error else "", result.review)
        refusal = _refusal_at_hub(request.id, result)
        if refusal is not None:
            raise refusal
        return result

    async def _result_of(self, request: ApprovalRequest, tools: ToolCaller, listener: CallListener) -> ToolResult:
        """Run the tool, after the approvers whom a rule names have approved the call."""
        call, review = request.effective_call, None
        if self._second_persons is not None and needs_approvers(request.evaluation):
            answer = await self._second_persons.ask(call, request.tool, listener=listener)
            if answer.is_error:
                return answer
            self._check_rules(request)
            await self._check_unchanged(request, tools)
            review = answer.review
        elif request.decision is not None:
            await self._check_unchanged(request, tools)
        result = await tools.call_tool(call, listener=listener)
        return result if review is None else replace(result, review=review)

    def _check_rules(self, request: ApprovalRequest) -> None:
        """Refuse a call that the Hub approved if rules deny it by now."""
        call = request.effective_call
        evaluation = self._policies.evaluate(call, request.tool)
        if evaluation.effect is Effect.DENY:
            reason = str(evaluation.rule or "a lasting answer")
            raise ToolCallRejectedError(
                f"`{call.qualified_name}` did not run: it is denied by now: {reason}", reason=reason
            )

    async def _check_unchanged(self, request: ApprovalRequest, tools: ToolCaller) -> None:
        """Refuse a call whose server or tool is not the one that was shown to those who approved it."""
        call = request.effective_call
        tool = await tools.describe(call.server, call.tool)
        what = "" if self._approvals.requests.has_same_server(request) else "the entry of its server"
        if not what and tool.digest != request.tool.digest:
            what = "what its server says of the tool"
        if what:
            raise ToolServerError(
                f"`{call.qualified_name}` did not run: {what} has changed since it was asked for."
                " Run the code again to ask again."
            )

    def _finish(
        self, request: ApprovalRequest, state: OutcomeState, error: str = "", review: HubReview | None = None
    ) -> None:
        self._questions.forget(request.id)
        self._keep_end(request.id, self._approvals.record(request.id, state, error[:ERROR_TEXT_LIMIT], review))

    def _keep_end(self, request_id: str, recording: Awaitable[object]) -> None:
        self._approvals.record_meanwhile(self._record_end(request_id, recording))

    async def _record_end(self, request_id: str, recording: Awaitable[object]) -> None:
        """Record the end. The tool may have run: an error of the store must not hide its result."""
        try:
            await recording
        except (StorageError, ApprovalError):
            log.exception("the outcome of request %s could not be stored", request_id)
            self._approvals.abandon(request_id)


def _nobody_there(call: ToolCall, request_id: str | None = None) -> ApprovalCancelledError:
    return ApprovalCancelledError(
        f"the caller of `{call.qualified_name}` is gone; the call did not run", request_id=request_id
    )


def _too_late_back(request: ApprovalRequest) -> ApprovalCancelledError:
    return ApprovalCancelledError(
        f"`{request.call.qualified_name}` was allowed while its caller was away, but did not run: the caller came back"
        " too late, or the rules have changed. Run the code again to ask again.",
        request_id=request.id,
    )


def _answer_is_gone(request: ApprovalRequest) -> ApprovalCancelledError:
    return ApprovalCancelledError(
        f"`{request.call.qualified_name}` was allowed while its caller was away; its answer is not kept,"
        " and it may have had an effect",
        request_id=request.id,
    )


def _refusal(request: ApprovalRequest) -> AgentBoxError:
    name = request.call.qualified_name
    if request.status is Status.EXPIRED:
        return ApprovalExpiredError(
            f"{_too_late(request)}; it did not run. Run the cell again to ask again.",
            request_id=request.id,
        )
    if request.status is Status.REJECTED:
        reason = reason_for(request)
        if request.decision is not None and request.decision.reviewer.via is Via.NOBODY:
            return NobodyToAskError(f"`{name}` did not run: {reason}", request_id=request.id, reason=reason)
        told = f": {reason}" if reason else ""
        return ToolCallRejectedError(
            f"`{name}` was rejected{_by(request)}; it did not run{told}", request_id=request.id, reason=reason
        )
    if request.status is Status.ORPHANED:
        return ApprovalCancelledError(
            f"the kernel or its server ended before anybody decided about `{name}`; it did not run."
            " Run the code again in a fresh kernel to ask again.",
            request_id=request.id,
        )
    how = request.outcome_state.value if request.outcome_state is not None else request.status.value
    return ApprovalCancelledError(
        f"the request for `{name}` was withdrawn ({how}); it did not run", request_id=request.id
    )


def _refusal_at_hub(request_id: str, result: ToolResult) -> AgentBoxError | None:
    """Return the error of a call that the Hub service did not run; ``None`` if it ran."""
    if not result.is_error or result.review is None:
        return None
    match result.review.status:
        case Status.REJECTED.value:
            return ToolCallRejectedError(result.text, request_id=request_id, reason=result.review.reason)
        case Status.EXPIRED.value:
            return ApprovalExpiredError(result.text, request_id=request_id)
        case Status.CANCELLED.value | Status.ORPHANED.value:
            return ApprovalCancelledError(result.text, request_id=request_id)
        case _:
            return None


def _by(request: ApprovalRequest) -> str:
    """Return who rejected a request, unless it was a person, or is in the reason."""
    rule = request.evaluation.rule
    if request.decision is not None and rule is not None and rule.approvers is not None:
        return f" by {request.decision.reviewer.name}"  # the caller is told who else was asked
    if request.decision is not None:
        if request.decision.rule is not None:
            return " by a rule"
        return " by a model that reviews calls" if request.decision.reviewer.kind is ReviewerKind.MODEL else ""
    if request.evaluation.grant is not None:
        return " by an earlier answer"
    return "" if rule is not None and rule.layer is Layer.THREAD else " by a rule"


def _too_late(request: ApprovalRequest) -> str:
    """Return who had answered a request that expired."""
    name, rule = request.call.qualified_name, request.evaluation.rule
    if not request.votes or rule is None or rule.approvers is None:
        return f"nobody decided about `{name}` in time"
    voters = " and ".join(vote.reviewer.name for vote in request.votes)
    return f"`{name}` needed the approval of {rule.approvers.count} people, and only {voters} approved it in time"
