"""REST: list the questions of MCP servers, read one, answer one."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.questions import answer_from_json
from jupyter_agentbox.exceptions import InvalidRequestError
from jupyter_agentbox.services.approvals.handlers import AUTH_RESOURCE
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.reviewers import reviewer_of

from .manager import QuestionManager

#: Maximum size of an answer's body, in bytes.
LONGEST_ANSWER: Final = 256_000


class QuestionsAPIHandler(AgentBoxHandler):
    """Base of the handlers of questions. Whoever may decide approval requests may answer them."""

    auth_resource = AUTH_RESOURCE

    @property
    def questions(self) -> QuestionManager:
        """The manager of questions."""
        return self.services.questions


class QuestionsHandler(QuestionsAPIHandler):
    """All open questions, oldest first."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List the questions."""
        self.finish_json({"questions": [question.to_json() for question in self.questions.pending()]})


class QuestionHandler(QuestionsAPIHandler):
    """An open question."""

    @web.authenticated
    @authorized
    async def get(self, question_id: str) -> None:
        """Read a question."""
        self.finish_json(self.questions.get(question_id).to_json())


class QuestionAnswerHandler(QuestionsAPIHandler):
    """A person's answer to a question, sent to the server that asked, and to no kernel."""

    @web.authenticated
    @authorized
    async def post(self, question_id: str) -> None:
        """Answer a question."""
        if len(self.request.body) > LONGEST_ANSWER:
            raise InvalidRequestError(f"an answer has {LONGEST_ANSWER:,} bytes at most")
        try:
            action, content = answer_from_json(self.json_object())
        except ValueError as error:
            raise InvalidRequestError(str(error)) from None
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        await self.questions.answer(question_id, action, content, reviewer=reviewer)
        self.finish_json({"id": question_id, "action": action.value})


_ID = r"(?P<question_id>[A-Za-z0-9_-]+)"

default_handlers = [
    (r"/jupyter-agentbox/questions/?", QuestionsHandler),
    (rf"/jupyter-agentbox/questions/{_ID}/?", QuestionHandler),
    (rf"/jupyter-agentbox/questions/{_ID}/answer/?", QuestionAnswerHandler),
]
