"""The scripted model of the demo: it goes on as it should from what the kernel, or a person, answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_agentbox import AsyncAgent
from jupyter_agentbox.core.threads import CodeRun, ItemStatus, TurnStatus
from jupyter_agentbox.demo.script import MODEL, UNKNOWN, answer, scripted_model
from jupyter_agentbox.demo.stories import BARS, OCTOBER, READ, SOLD
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FunctionCall, ModelRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jupyter_agentbox.agents.threads.ports import PendingApproval

BEST = "Which products sold best in October? Plot it, then raise the price of the best one by 5 %."
OPEN = "Which orders are still open, and who has waited longest?"

PRINTED = "19 orders in October\n  8 × House Espresso (product 6), 11.90 €\n  7 × Teapot, 0.8 l (product 9), 42.00 €"
NO_MONTH = "AttributeError: 'str' object has no attribute 'month'"
REFUSED = "The code did not run: `notebook.run_code` was rejected; it did not run: too dear already"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)  # where the plot is stored
    servers = tmp_path / "mcp.json"
    shop = {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}
    servers.write_text(json.dumps({"mcpServers": {"shop": shop}}))
    database = sqlite_url(str(tmp_path / "approvals.db"))
    return lambda url: AsyncAgent(MODEL, base_url=url, mcp_config_path=servers, database_url=database)


async def test_it_walks_through_its_stories_in_a_real_kernel(agent: Any) -> None:
    called = []

    async def decide(request: PendingApproval) -> None:
        called.append(request.tool_name)
        await (request.reject("not this week") if request.tool_name == "set_price" else request.accept())

    with scripted_model(pause=0) as model:
        async with agent(model.base_url) as agent:
            thread = await agent.thread_start()
            first = await thread.run(BEST, on_approval=decide)
            second = await thread.run(OPEN, on_approval=decide)

    runs = [item for item in first.items if isinstance(item, CodeRun)]
    good, bad = ItemStatus.COMPLETED, ItemStatus.FAILED
    assert [run.status for run in runs] == [good, bad, good, good, bad]
    assert "AttributeError" in runs[1].error
    assert [name for name in called if name != "run_code"] == ["list_orders", "query", "set_price"]
    assert (first.status, second.status) == (TurnStatus.COMPLETED, TurnStatus.COMPLETED)
    assert "**House Espresso** sold best in October: 8 pieces." in first.final_response
    assert "The price stays at 11.90 €: the change was refused (“not this week”)." in first.final_response
    (looked,) = [item for item in second.items if isinstance(item, CodeRun)]
    assert "tools.shop" not in looked.code  # the first turn's variable is there
    assert "9 orders are open" in second.final_response
    assert "**Jonas Becker** has waited longest: order 1202, since 2025-12-20" in second.final_response


def after(*outputs: str, question: str = BEST, before: Sequence[Any] = ()) -> tuple[str, Any]:
    """Return what the script says and calls once its calls have given these outputs."""
    done = [{"type": "function_call_output", "call_id": f"c{n}", "output": one} for n, one in enumerate(outputs)]
    body = {"input": [*before, {"role": "user", "content": question}, *done]}
    return said_and_called(body)


def said_and_called(body: Any) -> tuple[str, Any]:
    message, *calls = answer(ModelRequest(path="/v1/responses", headers={}, body=json.dumps(body).encode()))
    assert not isinstance(message, FunctionCall)
    called = [json.loads(call.arguments).get("code") for call in calls if isinstance(call, FunctionCall)]
    return message.text, called[0] if called else None


@pytest.mark.parametrize(
    ("outputs", "says", "calls"),
    [
        pytest.param([], "First I read", READ, id="asked"),
        pytest.param(["[]"], "October", OCTOBER, id="read"),
        pytest.param(["[]", NO_MONTH], "My mistake", SOLD, id="error"),
        pytest.param(
            ["[]", "A person edited the code before it ran. This ran:\nx\nIts output:\n19"], "That worked", SOLD,
            id="edited",
        ),
        pytest.param(["[]", REFUSED], "You refused that (“too dear already”)", SOLD, id="filter-refused"),
        pytest.param(["[]", NO_MONTH, PRINTED, "ModuleNotFoundError: No module named 'matplotlib'"],
                     "no matplotlib", BARS, id="no-matplotlib"),
        pytest.param(["[]", NO_MONTH, PRINTED, REFUSED], "without a plot",
                     "tools.shop.set_price(product_id=6, price=12.50)", id="plot-refused"),
        pytest.param(["[]", NO_MONTH, PRINTED, "(1 image was displayed to the person)", REFUSED],
                     "stays at 11.90 €: the change was refused (“too dear already”)", None, id="price-refused"),
        pytest.param(["[]", NO_MONTH, PRINTED, "", "Product(id=6, name='House Espresso', price=12.0, stock=9)"],
                     "House Espresso costs 12.0 € now", None, id="price-edited"),
        pytest.param([REFUSED], "Without the orders I cannot say what sold best. It was refused", None, id="refused"),
        pytest.param(["[]", NO_MONTH, "UnknownServerError: no server `shop`"], "`UnknownServerError: no server",
                     None, id="other-error"),
    ],
)  # fmt: skip
def test_each_step_follows_from_what_the_steps_before_gave(outputs: list[str], says: str, calls: str | None) -> None:
    said, called = after(*outputs)

    assert says in said
    assert called == calls


def test_a_question_that_it_does_not_know_is_answered_with_what_it_is() -> None:
    assert after(question="What is the meaning of life?") == (UNKNOWN, None)


def test_a_turn_that_was_ended_does_not_count_for_the_next() -> None:
    interrupted = [
        {"role": "user", "content": OPEN},
        {"type": "function_call", "call_id": "c0", "name": "list_variables", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c0", "output": "interrupted"},
    ]

    assert after(before=interrupted)[1] == READ


def test_a_word_in_the_middle_is_answered_and_the_turn_goes_on() -> None:
    items: list[Any] = [
        {"role": "user", "content": BEST},
        {"type": "function_call_output", "call_id": "c0", "output": "[]"},
        {"role": "user", "content": [{"type": "input_text", "text": "in kroner, please"}]},
    ]
    said, called = said_and_called({"input": items})
    assert "You said “in kroner, please”" in said
    assert called == OCTOBER
    answered = [*items, {"role": "assistant", "content": said}, {"type": "function_call_output", "output": NO_MONTH}]
    said, called = said_and_called({"input": answered})
    assert "kroner" not in said
    assert called == SOLD
