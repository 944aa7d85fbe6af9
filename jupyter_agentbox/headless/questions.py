"""An MCP server's question, as a program sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_agentbox.core.questions import OpenQuestion, QuestionAction, QuestionAnswer
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.core.text import one_line, visible

from .reports import LONGEST, ServerLogMessage


@dataclass(frozen=True)
class ServerQuestion:
    """A question of an MCP server while one of its tools runs. All of it is untrusted.

    Parameters
    ----------
    server_name, tool_name : str
        The server that asks, and its tool that runs.
    message : str
        What it says.
    schema : dict or None
        JSON Schema of the values that it wants: an object of flat fields; ``None`` if it wants a page to be opened.
    url : str or None
        The page; ``None`` if it wants values. Open it only if a person says so.
    request_id : str
        The call's id in the approval store.
    """

    server_name: str
    tool_name: str
    message: str
    schema: Mapping[str, Any] | None
    url: str | None
    request_id: str

    def __str__(self) -> str:
        return f"{self.server_name}.{self.tool_name} asks: {one_line(self.message, LONGEST)}"


#: Answers a question: with the values of its form, with ``True`` for a page that the person opens, with ``False`` to
#: decline, or with ``None`` where nobody wants to say.
AnswerQuestion = Callable[[ServerQuestion], Awaitable[Mapping[str, Any] | bool | None]]


class OpenQuestions:
    """The questions that a program's function is answering.

    Parameters
    ----------
    answer : callable or None
        The function; without one, each question is declined.
    on_change : callable
        Called when there is one more, or one less.
    """

    def __init__(self, answer: AnswerQuestion | None, on_change: Callable[[], None]) -> None:
        self._answer = answer
        self._on_change = on_change
        self._count = 0

    def __len__(self) -> int:
        return self._count

    async def ask(self, question: ServerQuestion) -> Mapping[str, Any] | bool | None:
        """Ask the program."""
        if self._answer is None:
            return False
        self._count += 1
        self._on_change()
        try:
            return await self._answer(question)
        finally:
            self._count -= 1
            self._on_change()


class ProgramAnswerer:
    """Answers servers' questions with a function of the program; without one, declines them with a log message.

    Parameters
    ----------
    answer : callable or None
        The program's.
    reviewer : Reviewer
        Who answers, for the record.
    on_report : callable
        Gets a line for each question that was declined because there is no function.
    """

    def __init__(
        self, answer: AnswerQuestion | None, *, reviewer: Reviewer, on_report: Callable[[ServerLogMessage], None]
    ) -> None:
        self._answer = answer
        self._reviewer = reviewer
        self._on_report = on_report

    async def __call__(self, asked: OpenQuestion) -> QuestionAnswer:
        """Answer a question."""
        question = ServerQuestion(
            server_name=asked.server,
            tool_name=asked.tool,
            message=visible(asked.question.message),
            schema=asked.question.schema or None,
            url=asked.question.url or None,
            request_id=asked.request_id,
        )
        if self._answer is None:
            text = f"declined, because the program gave no `on_question`: {question}"
            self._on_report(ServerLogMessage(asked.server, "warning", "jupyter_agentbox", one_line(text, LONGEST)))
            return QuestionAnswer(action=QuestionAction.DECLINE)
        return self._read(await self._answer(question))

    def _read(self, answered: Mapping[str, Any] | bool | None) -> QuestionAnswer:
        if isinstance(answered, Mapping):
            return QuestionAnswer(action=QuestionAction.ACCEPT, content=dict(answered), reviewer=self._reviewer)
        actions = {True: QuestionAction.ACCEPT, False: QuestionAction.DECLINE, None: QuestionAction.CANCEL}
        return QuestionAnswer(action=actions[answered], reviewer=self._reviewer)
