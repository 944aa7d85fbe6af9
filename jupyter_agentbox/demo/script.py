"""The demo's scripted model: a server of OpenAI's Responses API that answers two questions without a language model.

Its next step depends on the result of the last one: an output, an error, a rejection, or an edit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jupyter_agentbox.demo.stories import Call, Story, best_sellers, open_orders
from jupyter_agentbox.demo.turn import Outcome, Turn, read_turn
from jupyter_agentbox.testing import FunctionCall, Message, MockModelServer, ModelRequest

#: The name of the model in the demo.
MODEL: Final = "openai:demo-script"

#: Seconds between the words of an answer, so that they appear one by one.
PAUSE: Final = 0.03

#: For each question, by some of its words, the story that answers it.
STORIES: Final[Mapping[tuple[str, ...], Callable[[], Story]]] = {
    ("best", "october"): best_sellers,
    ("orders", "open"): open_orders,
}

UNKNOWN: Final = """\
I am a script and no language model: I know the two questions of this notebook.

- Which products sold best in October? Plot it, then raise the price of the best one by 5 %.
- Which orders are still open, and who has waited longest?

To ask your own, start JupyterLab with a model: `jupyter lab --AgentBoxApp.agent_model=openai:NAME`.
"""


def scripted_model(pause: float = PAUSE) -> MockModelServer:
    """Return the scripted model as a server on 127.0.0.1, to be entered as a context.

    Parameters
    ----------
    pause : float
        Seconds between the words of an answer.
    """
    return MockModelServer(answer=answer, pause=pause)


def answer(request: ModelRequest) -> Sequence[Message | FunctionCall]:
    """Return the script's next text and call."""
    items = _items(request.json())
    turn = read_turn(items, lambda said: _story(said) is not None)
    make_story = _story(turn.question)
    if make_story is None:
        return [Message(text=UNKNOWN, phase="final_answer")]
    step = _next(make_story(), turn.outcomes)
    if isinstance(step, str):
        return [Message(text=_heard(turn) + step, phase="final_answer")]
    call = FunctionCall(id=f"call_{len(items)}", name=step.name, arguments=json.dumps(step.arguments))
    return [Message(text=_heard(turn) + step.say, phase="commentary"), call]


def _items(body: Any) -> Sequence[Mapping[str, Any]]:
    said = body.get("input", body.get("messages", []))
    return [{"role": "user", "content": said}] if isinstance(said, str) else said


def _story(said: str) -> Callable[[], Story] | None:
    words = said.lower()
    return next((story for wanted, story in STORIES.items() if all(word in words for word in wanted)), None)


def _next(story: Story, outcomes: Sequence[Outcome]) -> Call | str:
    """Send a story all results so far; return its next call or its answer."""
    try:
        call = next(story)
        for outcome in outcomes:
            call = story.send(outcome)
    except StopIteration as end:
        return str(end.value)
    return call


def _heard(turn: Turn) -> str:
    return f"You said “{turn.word}”. I am a script and cannot follow that, so I go on.\n\n" if turn.word else ""
