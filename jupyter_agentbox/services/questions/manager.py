"""Asks people the questions of MCP servers, and returns the answers to the servers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonObject, check_arguments
from jupyter_agentbox.core.ports import Announcer, ArgumentChecker, Clock, Ids
from jupyter_agentbox.core.questions import (
    NOBODY,
    OpenQuestion,
    QuestionAction,
    QuestionAnswer,
    QuestionMode,
    QuestionRecord,
    ServerQuestion,
)
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    InvalidRequestError,
    InvalidTransitionError,
    UnknownQuestionError,
)
from jupyter_agentbox.services.approvals.running_calls import RunningCalls

log = logging.getLogger(__name__)

#: Maximum number of open questions of each owner. Further ones are cancelled at once.
MOST_OPEN: Final = 100
#: Maximum number of questions per call, one after the other.
MOST_OF_CALL: Final = 30
#: How many ended questions are remembered, to reject a second answer as such.
_MOST_OVER: Final = 1_000

#: Answers questions in place of the pages of this server: a program's function, or the Hub service's relay to callers.
#: It has to keep to `expires_at` itself.
Answerer = Callable[[OpenQuestion], Awaitable[QuestionAnswer]]


@dataclass(slots=True, eq=False)
class _Waiting:
    """An open question, with the future of its answer."""

    asked: OpenQuestion
    #: Whose it is: the open questions of each owner have a limit.
    owner: str
    answer: asyncio.Future[QuestionAnswer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    #: An answer is being stored: others are rejected, and the timeout is suspended.
    is_taken: bool = False
    is_kept: bool = False
    #: The task that stores the answer of a person.
    storing: asyncio.Task[None] | None = None


class QuestionManager:
    """Manages the open questions.

    A question is not an approval: its answer runs nothing but what the server does with it. It belongs to a running
    call, and ends with it.

    Parameters
    ----------
    running_calls : RunningCalls
        Stores questions and answers with the call's request.
    announcer : Announcer
        Notified of each change.
    clock : Clock
        Source of the time.
    ids : Ids
        Generates question ids.
    timeout : timedelta or None
        How long a question waits for a person; ``None`` for no limit.
    checker : ArgumentChecker
        Validates the values of forms.
    redaction : Redaction
        Redacts stored values.
    decide_with : DecideWith
        The credentials required to answer.
    answerer : callable, optional
        Answers all questions, in place of the pages of this server.
    owner_of : callable, optional
        Returns whose a call's questions are. Each owner has a limit of open questions; by default, there is one owner.
    keeps_values : bool
        Whether the record contains what was answered, without secrets, or only that it was.
    on_end : callable, optional
        Called with the name of the server and with what it is told, at the end of each question.
    """

    def __init__(
        self,
        *,
        running_calls: RunningCalls,
        announcer: Announcer,
        clock: Clock,
        ids: Ids,
        timeout: timedelta | None,
        checker: ArgumentChecker,
        redaction: Redaction,
        decide_with: DecideWith = DecideWith.ANY,
        answerer: Answerer | None = None,
        owner_of: Callable[[ApprovalRequest], str] = lambda _: "",
        keeps_values: bool = True,
        on_end: Callable[[str, QuestionAction], None] = lambda _server, _action: None,
    ) -> None:
        self._running_calls = running_calls
        self._announcer = announcer
        self._clock = clock
        self._ids = ids
        self._timeout = timeout
        self._checker = checker
        self._redaction = redaction
        self._decide_with = decide_with
        self._answerer = answerer
        self._owner_of = owner_of
        self._keeps_values = keeps_values
        self._on_end = on_end
        self._waiting: dict[str, _Waiting] = {}
        self._over: dict[str, QuestionAction] = {}
        self._counts: Counter[str] = Counter()
        self._refused_of: set[str] = set()

    def pending(self) -> tuple[OpenQuestion, ...]:
        """Return the open questions, oldest first."""
        return tuple(waiting.asked for waiting in self._waiting.values())

    def get(self, question_id: str) -> OpenQuestion:
        """Return an open question.

        Raises
        ------
        UnknownQuestionError
        """
        waiting = self._waiting.get(question_id)
        if waiting is None:
            raise UnknownQuestionError(f"no question `{question_id}` waits for an answer")
        return waiting.asked

    async def ask(self, request_id: str, question: ServerQuestion) -> QuestionAnswer:
        """Ask a person a question; return ``cancel`` if nobody answers in time. Cancelling the task ends the question.

        Parameters
        ----------
        request_id : str
            The running call.
        question : ServerQuestion
            The server's question.
        """
        request = self._running_calls.find(request_id)
        if request is None or self._are_too_many(request):
            if request_id not in self._refused_of:
                log.warning("a question of an MCP server was cancelled: too many, or its call has ended")
            if request is not None:
                self._refused_of.add(request_id)  # a server can ask without end, and each would be a line
                self._on_end(request.call.server, NOBODY.action)
            return NOBODY
        now = self._clock.now()
        asked = OpenQuestion(
            id=self._ids.new(),
            request_id=request_id,
            server=request.call.server,
            tool=request.call.tool,
            origin=request.call.origin,
            question=question,
            asked_at=now,
            expires_at=None if self._timeout is None else now + self._timeout,
        )
        self._counts[request_id] += 1
        waiting = self._waiting[asked.id] = _Waiting(asked, self._owner_of(request))
        self._announcer.questions_changed()
        answer = NOBODY
        try:
            answer = await self._answer_to(waiting) or NOBODY
        finally:
            self._close(waiting, answer)
        return answer

    def forget(self, request_id: str) -> None:
        """Drop the state of a call that has ended."""
        self._counts.pop(request_id, None)
        self._refused_of.discard(request_id)

    async def answer(
        self, question_id: str, action: QuestionAction, content: JsonObject, *, reviewer: Reviewer
    ) -> OpenQuestion:
        """Accept a person's answer, store it, and pass it to the server. The first answer counts.

        Parameters
        ----------
        question_id : str
            The question's id.
        action : QuestionAction
            Accept, decline or cancel.
        content : dict
            The values of an accepted form.
        reviewer : Reviewer
            Who answered.

        Raises
        ------
        NeedsPersonError
            Answers of this reviewer do not count.
        UnknownQuestionError
            There is no such question.
        InvalidTransitionError
            It was already answered, or has ended.
        InvalidRequestError, ToolArgumentsError
            The values do not match the form.
        StorageError
            The answer could not be stored, so the server does not get it.
        """
        reviewer.check(self._decide_with)
        waiting = self._find(question_id)
        await self._check(waiting.asked.question, action, content)
        if self._find(question_id).is_taken:
            raise InvalidTransitionError("this question was answered in the same moment")
        waiting.is_taken = True  # before any await
        answer = QuestionAnswer(action=action, content=content, reviewer=reviewer)
        waiting.storing = asyncio.create_task(self._take(waiting, answer))
        await asyncio.shield(waiting.storing)
        return waiting.asked

    def _are_too_many(self, request: ApprovalRequest) -> bool:
        """Whether a call has asked too many questions, or too many of its owner's are open."""
        owner = self._owner_of(request)
        of_owner = sum(waiting.owner == owner for waiting in self._waiting.values())
        return of_owner >= MOST_OPEN or self._counts[request.id] >= MOST_OF_CALL

    def _record(self, asked: OpenQuestion, answer: QuestionAnswer) -> QuestionRecord:
        kept = answer if self._keeps_values else replace(answer, content={})
        return self._redaction.question(asked, kept, at=self._clock.now())

    async def _answer_to(self, waiting: _Waiting) -> QuestionAnswer | None:
        if self._answerer is not None:
            return await self._answer_from(self._answerer, waiting)
        seconds: float | None = None if self._timeout is None else self._timeout.total_seconds()
        while True:
            done, _ = await asyncio.wait([waiting.answer], timeout=seconds)
            if done:
                return waiting.answer.result()
            if not waiting.is_taken or waiting.storing is None:
                return None
            await asyncio.wait([waiting.storing])
            seconds = 0  # if the answer could not be stored, the time is up

    async def _answer_from(self, answerer: Answerer, waiting: _Waiting) -> QuestionAnswer | None:
        try:
            answer = await answerer(waiting.asked)
            await self._check(waiting.asked.question, answer.action, answer.content)
            waiting.is_taken = True
            await self._take(waiting, answer)
        except AgentBoxError as error:  # its message may contain a typed value
            log.warning("the answer to a question of `%s` cannot be used: %s", waiting.asked.server, error.code)
            return None
        return answer

    async def _check(self, question: ServerQuestion, action: QuestionAction, content: JsonObject) -> None:
        if action is QuestionAction.ACCEPT and question.mode is QuestionMode.FORM:
            check_arguments(content)
            await self._checker.check(ToolDescription(name="form", input_schema=question.schema), content)
        elif content:
            raise InvalidRequestError("values go with an accepted form only")

    def _find(self, question_id: str) -> _Waiting:
        waiting = self._waiting.get(question_id)
        if waiting is not None:
            return waiting
        if question_id in self._over:
            ending = self._over[question_id].value
            raise InvalidTransitionError(f"question `{question_id}` is over: it ended with {ending}")
        raise UnknownQuestionError(f"no question `{question_id}`")

    async def _take(self, waiting: _Waiting, answer: QuestionAnswer) -> None:
        """Store an accepted answer, and then pass it on."""
        try:
            record = self._record(waiting.asked, answer)
            await self._running_calls.keep_question(waiting.asked.request_id, record)
        except BaseException:
            waiting.is_taken = False
            raise
        waiting.is_kept = True
        if not waiting.answer.done():
            waiting.answer.set_result(answer)

    def _close(self, waiting: _Waiting, answer: QuestionAnswer) -> None:
        asked = waiting.asked
        del self._waiting[asked.id]
        self._over[asked.id] = answer.action
        self._on_end(asked.server, answer.action)
        if len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]
        if not waiting.is_kept and not waiting.is_taken:
            self._running_calls.note_question(asked.request_id, self._record(asked, answer))
        self._announcer.questions_changed()
