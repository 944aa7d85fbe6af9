"""A turn without a loop: the model writes code, which is analyzed, approved and run, and rewritten on an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from jupyter_agentbox.analysis.analyzer import CodeAnalyzer
from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.text import fenced
from jupyter_agentbox.core.threads import AgentMessage, ItemStatus, Phase
from jupyter_agentbox.exceptions import CodeGeneratorConfigurationError

from .code_prompts import INSTRUCTIONS, code_in, code_prompt
from .pipeline import CodePipeline
from .ports import Execution, Waiting
from .requests import CodeRequest
from .results import AttemptError, CodeResult, CodeStatus, Stage
from .threads.agent_tools import TurnContext
from .threads.histories import transcript
from .threads.limits import shortened
from .threads.turns import Conversation, TurnRunner
from .threads.usage_meter import LimitReachedError

#: Maximum length of an output repeated in the answer, in characters.
_OUTPUT: Final = 4_000
_STATUSES: Final = {
    ItemStatus.COMPLETED: CodeStatus.SUCCEEDED,
    ItemStatus.FAILED: CodeStatus.FAILED,
    ItemStatus.DECLINED: CodeStatus.REJECTED,
    ItemStatus.INTERRUPTED: CodeStatus.CANCELLED,
}


class GenerateRunner(TurnRunner):
    """Runs a turn with the pipeline of `CodeService`: generate, analyze, ask, run; and on an error, again.

    Each piece of code is a code run of the turn, approved like any other; the answer contains the last one's output.
    The maximum number of attempts is `TurnLimits.attempts`.
    """

    async def converse(self, prompt: str, conversation: Conversation) -> None:
        """Process the request to its end, and answer."""
        generator = _Generator(self, context=transcript(conversation.messages) if conversation.messages else "")
        conversation.messages.append(ModelRequest(parts=[UserPromptPart(prompt)]))
        await self.context.keep()
        analyzer = CodeAnalyzer()
        pipeline = CodePipeline(generator=generator, analyzer=analyzer)
        request = CodeRequest(user_query=prompt, task_objective=prompt, max_attempts=self.limits.attempts)
        try:
            result = await pipeline.run(request, _Runner(self.context))
        finally:
            analyzer.close()
        if generator.failure is not None:
            raise generator.failure
        answer = answer_of(result)
        self.record.complete(AgentMessage(id=self.record.new_id(), text=answer, phase=Phase.FINAL_ANSWER))
        said = f"I wrote this code:\n{fenced(result.code.rstrip(), 'python')}\n\n{answer}"
        conversation.messages.append(ModelResponse(parts=[TextPart(said)]))


@dataclass(slots=True)
class _Generator:
    """Asks the turn's model for code. Keeps an error that ends the turn in `failure`: the pipeline would retry."""

    turn: GenerateRunner
    context: str
    failure: AgentRunError | LimitReachedError | None = None

    async def generate_code(self, request: CodeRequest, error_chain: Sequence[AttemptError]) -> str:
        if error_chain and error_chain[-1].stage in (Stage.GENERATION, Stage.ANALYSIS):
            last = error_chain[-1]
            self.turn.record.notice("attempt", f"Attempt {last.attempt} did not run: {last.message}")
        asked = replace(request, user_query="\n\n".join([request.user_query, *self.turn.words]))
        agent = Agent(self.turn.model, instructions=INSTRUCTIONS, output_type=str)
        try:
            self.turn.meter.begin_request()
            self.turn.meter.begin_run()
            answer = await agent.run(code_prompt(asked, error_chain, context=self.context))
        except (AgentRunError, LimitReachedError) as error:
            self.failure = error
            raise CodeGeneratorConfigurationError("the model cannot be asked") from error
        self.turn.meter.count_run(answer.usage)
        return code_in(answer.output)


@dataclass(frozen=True, slots=True)
class _Runner:
    """A `CodeRunner` whose code runs are items of a turn."""

    context: TurnContext

    async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
        on_waiting(False)
        ended = await self.context.run(code, analysis)
        status = _STATUSES[ended.status]
        has_run = status in (CodeStatus.SUCCEEDED, CodeStatus.FAILED)
        # The code's `results` are in the person's namespace, and shown: they are not needed here.
        results: dict[str, Any] | None = {} if status is CodeStatus.SUCCEEDED else None
        return Execution(
            status=status,
            error=ended.error,
            request_id=ended.request_id,
            approved_code=ended.code if has_run else None,
            results=results,
            text=ended.text,
        )


def answer_of(result: CodeResult) -> str:
    """Return the result of a request for code, in words for a person: the code's output, or why there is none."""
    count = len(result.attempts)
    attempts = f" at attempt {count}" if count > 1 else ""
    if result.succeeded:
        if not result.text:
            return f"The code ran{attempts}. It showed nothing."
        return f"The code ran{attempts}. It showed:\n\n{fenced(shortened(result.text, _OUTPUT).rstrip(), 'text')}"
    message = shortened(str(result.error), _OUTPUT)
    if result.status is not CodeStatus.FAILED:
        return f"The code did not run{attempts}: {message}"
    return f"The code failed{attempts}, and is not tried again:\n\n{fenced(message.rstrip(), 'text')}"
