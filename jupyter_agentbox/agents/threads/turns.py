"""`TurnRunner`: processes one turn. It asks the model, runs its code, and asks again, until the model has answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from pydantic_ai import Agent, AgentRun
from pydantic_ai.exceptions import AgentRunError, RunCancelled, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.threads import (
    AgentMessage,
    Phase,
    Reasoning,
    Turn,
    TurnError,
    TurnErrorCode,
    TurnStatus,
    UserMessage,
)
from jupyter_agentbox.exceptions import AgentBoxError, StorageError

from .agent_tools import TurnContext, make_toolset
from .histories import are_short, dump_history, transcript, with_short_outputs
from .instructions import INSTRUCTIONS
from .limits import TurnLimits
from .model_errors import is_too_long, text_of
from .record import TurnRecord
from .usage_meter import LimitReachedError, UsageMeter

log = logging.getLogger(__name__)

#: Characters of messages that are written at once: a thread would take longer.
_FEW: Final = 20_000

#: Keeps a turn, and what the model was sent of it.
Keep = Callable[[Turn, bytes], Awaitable[None]]


@dataclass(slots=True)
class Conversation:
    """The messages to and from the model; this turn's begin at `start`."""

    messages: list[ModelMessage]
    start: int
    replaces: bool = False

    async def kept(self) -> bytes:
        """Return what is stored of it with this turn."""
        said = self.messages[self.start :]
        if are_short(said, _FEW):
            return dump_history(said, replaces=self.replaces)
        # In a thread: a long one takes longer than others should wait.
        return await asyncio.to_thread(dump_history, said, replaces=self.replaces)


@dataclass(slots=True, kw_only=True)
class TurnRunner:
    """Processes one turn.

    Parameters
    ----------
    record : TurnRecord
        The turn.
    model : Model
        The client of the language model.
    context : TurnContext
        The context of the model's functions.
    limits : TurnLimits
        What the turn may use.
    meter : UsageMeter
        Counts the turn's cost.
    clock : Clock
        The time, which is recorded at the turn's end.
    keep : callable
        Stores the turn, before the answer of each step is used and before each run of code, so that it is known what
        was going on if the server dies.
    """

    record: TurnRecord
    model: Model
    context: TurnContext
    limits: TurnLimits
    meter: UsageMeter
    clock: Clock
    keep: Keep
    _run: AgentRun[TurnContext, str] | None = None
    words: list[str] = field(default_factory=list)

    def steer(self, text: str) -> None:
        """Send the model a message while it works; the model gets it before its next step."""
        self.record.complete(UserMessage(id=self.record.new_id(), text=text))
        if self._run is not None:
            self._run.enqueue(text)
        else:
            self.words.append(text)

    async def run(self, prompt: str, history: Callable[[], Awaitable[list[ModelMessage]]]) -> None:
        """Process the turn until the model has answered, or it ends otherwise; the record says how.

        Cancelling the task interrupts the turn; this returns then as well.

        Parameters
        ----------
        prompt : str
            The person's request to the agent.
        history : callable
            Returns the messages of earlier turns.
        """
        conversation = Conversation([], 0)
        self.context.keep = partial(self._keep, conversation)
        self.record.complete(UserMessage(id=self.record.new_id(), text=prompt))
        status, error = await self._outcome(prompt, conversation, history)
        self.context.close()
        self.record.end(status, at=self.clock.now(), error=error)
        try:
            await asyncio.shield(self._keep(conversation))
        except Exception:
            # As above: whatever happens, its readers must hear that it ended.
            log.exception("the end of turn %s could not be stored", self.record.turn.id)
        finally:
            self.record.close()

    async def _keep(self, conversation: Conversation) -> None:
        await self.keep(self.record.turn, await conversation.kept())

    async def _outcome(
        self, prompt: str, conversation: Conversation, history: Callable[[], Awaitable[list[ModelMessage]]]
    ) -> tuple[TurnStatus, TurnError | None]:
        try:
            async with self.context.clock, self.model:
                conversation.messages = await history()
                conversation.start = len(conversation.messages)
                await self.converse(prompt, conversation)
        except asyncio.CancelledError:
            return TurnStatus.INTERRUPTED, None
        except LimitReachedError as reached:
            return self._limited(str(reached))
        except AgentRunError as error:
            return TurnStatus.FAILED, TurnError(code=TurnErrorCode.MODEL, message=text_of(error, self.model))
        except StorageError as error:
            return TurnStatus.FAILED, TurnError(code=TurnErrorCode.INTERNAL, message=str(error))
        except AgentBoxError as error:
            return TurnStatus.FAILED, TurnError(code=TurnErrorCode.KERNEL, message=str(error))
        except Exception as error:
            if isinstance(error, TimeoutError) and self.context.clock.is_over:
                return self._limited(f"it reached the limit of {self.limits.seconds:g} seconds")
            # The root of a turn: whatever happens, its readers must hear that it ended.
            log.exception("turn %s failed", self.record.turn.id)
            return TurnStatus.FAILED, TurnError(code=TurnErrorCode.INTERNAL, message=type(error).__name__)
        return TurnStatus.COMPLETED, None

    def _limited(self, reached: str) -> tuple[TurnStatus, TurnError]:
        text = f"The turn ended: {reached}. Ask the agent to continue if you want it to go on."
        self.record.notice("limit", text)
        return TurnStatus.FAILED, TurnError(code=TurnErrorCode.LIMIT, message=text)

    async def converse(self, prompt: str, conversation: Conversation) -> None:
        """Converse with the model; if the conversation gets too long for it, shorten it and continue."""
        asked: str | None = prompt
        for shorten in (self._drop_outputs, self._summarize, None):
            try:
                await self._steps(asked, conversation)
            except AgentRunError as error:
                if shorten is None or not is_too_long(error):
                    raise
                if asked is not None and len(conversation.messages) == conversation.start:
                    conversation.messages.append(ModelRequest(parts=[UserPromptPart(asked)]))
                asked = None
                await shorten(conversation)
            else:
                return

    async def _drop_outputs(self, conversation: Conversation) -> None:
        conversation.messages = with_short_outputs(conversation.messages)
        self.record.notice("shortened", "The conversation is too long for the model: older outputs were shortened.")

    async def _summarize(self, conversation: Conversation) -> None:
        summary = await self._ask_for_summary(transcript(conversation.messages))
        last = conversation.messages[-1]
        question = [part for part in last.parts if isinstance(part, UserPromptPart)]
        said = UserPromptPart(f"A summary of our conversation so far:\n\n{summary}\n\nGo on from there.")
        conversation.messages = [ModelRequest(parts=[said, *question])]
        conversation.start, conversation.replaces = 0, True
        self.record.notice("summarised", "The conversation is too long for the model, so it continues from a summary.")

    async def _ask_for_summary(self, text: str) -> str:
        self.meter.begin_request()
        self.meter.begin_run()
        agent = Agent(self.model, output_type=str)
        answer = await agent.run(
            f"Summarize this conversation for yourself: what the person wants, what was done, what is known.\n\n{text}"
        )
        self.meter.count_run(answer.usage)
        return answer.output

    async def _steps(self, prompt: str | None, conversation: Conversation) -> None:
        before = list(conversation.messages)
        self.meter.begin_run()
        agent: Agent[TurnContext, str] = Agent(
            self.model, instructions=INSTRUCTIONS, toolsets=[make_toolset()], deps_type=TurnContext, retries=3
        )
        async with agent.iter(prompt, message_history=before, deps=self.context, usage_limits=None) as run:
            self._run = run
            for word in self.words:
                run.enqueue(word)
            self.words.clear()
            with self._noting(conversation, before, run):
                node = run.next_node
                while not Agent.is_end_node(node):
                    if Agent.is_model_request_node(node):
                        conversation.messages = [*before, *run.new_messages(), node.request]
                        self.meter.begin_request()
                        self.context.begin_step()
                        await self._ask(node, run.ctx, conversation)
                        self.meter.count_run(run.usage)
                    node = await run.next(node)
                    conversation.messages = [*before, *run.new_messages()]

    @contextmanager
    def _noting(self, conversation: Conversation, before: list[ModelMessage], run: AgentRun[TurnContext, str]) -> Any:
        """Keep the messages, however the run ends."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, LimitReachedError):  # then the model was not asked what it would have been
                cancelled = RunCancelled.from_cancellation(error)
                said = cancelled.new_messages() if cancelled is not None else run.new_messages()
                conversation.messages = [*before, *said]
            raise
        finally:
            self._run = None

    async def _ask(self, node: Any, ctx: Any, conversation: Conversation) -> None:
        """Ask the model, and store the turn before it has answered."""
        history = await conversation.kept()
        keeping = asyncio.ensure_future(self.keep(self.record.turn, history))
        try:
            await self._listen(node, ctx, keeping)
        finally:
            await asyncio.wait([keeping])
            if not keeping.cancelled():
                keeping.exception()  # it was raised, or something else ended the turn before it

    async def _listen(self, node: Any, ctx: Any, keeping: Awaitable[None]) -> None:
        """Pass on the model's answer as it arrives, once the turn is stored."""
        messages: dict[int, AgentMessage | Reasoning] = {}
        characters = 0
        try:
            async with _garbage_as_such(), node.stream(ctx) as events:
                await keeping
                async for event in events:
                    characters += _length(event)
                    if characters > self.limits.answer_characters:
                        raise LimitReachedError(
                            f"it reached the limit of {self.limits.answer_characters:,} characters per answer"
                        )
                    match event:
                        case PartStartEvent(part=TextPart() | ThinkingPart() as part):
                            self._start(messages, event.index, part)
                        case PartDeltaEvent(delta=TextPartDelta() as delta) if event.index in messages:
                            message = messages[event.index]
                            messages[event.index] = replace(message, text=message.text + delta.content_delta)
                            self.record.delta(message.id, delta.content_delta)
                        case PartEndEvent(part=TextPart() | ThinkingPart() as part) if event.index in messages:
                            self.record.complete(_item(messages.pop(event.index).id, part))
                        case _:
                            pass
        finally:
            for message in messages.values():  # it broke off: what was said until then stays
                self.record.complete(message)

    def _start(self, messages: dict[int, AgentMessage | Reasoning], index: int, part: TextPart | ThinkingPart) -> None:
        if not part.content and isinstance(part, ThinkingPart):
            return  # many providers keep the model's thoughts to themselves
        item = messages[index] = _item(self.record.new_id(), part)
        self.record.start(item)
        if isinstance(part, TextPart) and part.content:
            self.record.delta(item.id, part.content)


@asynccontextmanager
async def _garbage_as_such() -> AsyncIterator[None]:
    """Turn errors of the library about unexpected content of an answer into one that says the answer is unusable."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnexpectedModelBehavior(f"it is not in the model's format ({type(error).__name__})") from error


def _item(item_id: str, part: TextPart | ThinkingPart) -> AgentMessage | Reasoning:
    if isinstance(part, ThinkingPart):
        return Reasoning(id=item_id, text=part.content)
    phase = (part.provider_details or {}).get("phase")
    known = Phase(phase) if phase in {one.value for one in Phase} else None
    return AgentMessage(id=item_id, text=part.content, phase=known)


def _length(event: object) -> int:
    """Return how many characters an event of an answer adds to it."""
    if isinstance(event, PartStartEvent):
        part = event.part
        return len(part.content) if isinstance(part, TextPart | ThinkingPart) else len(str(getattr(part, "args", "")))
    if isinstance(event, PartDeltaEvent):
        delta = event.delta
        added = (getattr(delta, name, None) for name in ("content_delta", "args_delta"))
        return sum(len(str(one)) for one in added if one is not None)
    return 0
