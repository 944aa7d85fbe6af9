from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    ApprovalExpiredError,
    NoServerError,
    ToolArgumentsError,
    ToolCallInterruptedError,
    ToolCallRejectedError,
    ToolError,
)
from jupyter_agentbox.kernel.cells import Cell, Cells
from jupyter_agentbox.kernel.link import Link
from jupyter_agentbox.kernel.pending_requests import Patience
from jupyter_agentbox.protocol.messages import (
    Asked,
    Call,
    Cancel,
    Failure,
    GetModule,
    Hello,
    Ping,
    Pong,
    Running,
    StartTurn,
    TurnEvent,
    TurnNews,
    Unfinished,
    Waiting,
    Welcome,
    to_json,
)

from .conftest import HASTY, PATIENT
from .fakes import FakeTransport, ServerEnd, approved, rejected, reply


def test_call_returns_the_result_and_sends_exactly_the_arguments(link: Link, server: ServerEnd) -> None:
    result = link.call("shop", "list-orders", {"from": None, "ids": (1, 2)})

    assert result.value.echo == {"from": None, "ids": [1, 2]}
    assert server.calls == [
        Call(
            id=server.calls[0].id,
            server="shop",
            tool="list-orders",
            arguments={"from": None, "ids": [1, 2]},
            cell_id="cell-1",
        )
    ]


def test_first_message_says_hello_and_later_ones_do_not(link: Link, server: ServerEnd) -> None:
    link.call("shop", "a", {})
    link.call("shop", "b", {})

    assert [message.type for message in server.received] == ["hello", "call", "call"]
    assert link.welcome == Welcome(server_version="0.1.0", url="http://localhost:8888/lab")


def test_a_comment_is_printed_under_the_cell_and_the_value_stays_what_it_is(
    link: Link, server: ServerEnd, transport: FakeTransport
) -> None:
    def commented(call: Call) -> list[Any]:
        waiting, answer = approved(call)
        record = {"status": "approved", "by": "Ada", "at": "2026-11-22T00:32:10Z", "comment": "use 14.9"}
        return [waiting, replace(answer, content={**answer.content, "record": record})]

    server.script = commented

    result = link.call("shop", "set_price", {"price": 149})

    assert (result.value.echo, result.value.raw.comment) == ({"price": 149}, "use 14.9")
    kind, content, cell = transport.published[-1]
    assert (kind, content["text"]) == ("stream", "Comment by Ada on shop.set_price: use 14.9\n")
    assert cell.cell_id == "cell-1"


def test_rejection_raises_with_the_persons_reason(link: Link, server: ServerEnd) -> None:
    server.script = rejected

    with pytest.raises(ToolCallRejectedError) as caught:
        link.call("shop", "delete", {})

    assert (caught.value.reason, caught.value.request_id) == ("too many", "r1")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("expired", ApprovalExpiredError),
        ("cancelled", ApprovalCancelledError),
        ("interrupted", ToolCallInterruptedError),
        ("invalid_arguments", ToolArgumentsError),
        ("no_server", NoServerError),
    ],
)
def test_failure_is_raised_as_what_the_server_raised(
    link: Link, server: ServerEnd, code: str, error: type[Exception]
) -> None:
    server.script = lambda call: [Failure(id=call.id, code=code, message="why", details={"parameter": "status"})]

    with pytest.raises(error, match="why") as caught:
        link.call("shop", "a", {})

    assert getattr(caught.value, "parameter", "status") == "status"


def test_result_that_is_an_error_raises_with_the_tools_text(link: Link, server: ServerEnd) -> None:
    server.script = lambda call: [reply(call, content=({"type": "text", "text": "disk full"},), is_error=True)]

    with pytest.raises(ToolError, match="disk full") as caught:
        link.call("shop", "a", {})

    assert caught.value.result.is_error  # type: ignore[attr-defined]


def test_value_that_is_not_json_is_refused_before_anything_is_sent(link: Link, server: ServerEnd) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        link.call("shop", "a", {"when": object()})

    assert caught.value.parameter == "when"
    assert server.received == []


def test_silence_ends_in_an_error_after_repeats_of_the_same_call(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    now = [0.0]
    link = Link(transport, cells, patience=replace(PATIENT, attach=1), clock=lambda: now[0])

    def answers(message: Any) -> Any:
        server.received.append(message)
        now[0] += 0.3
        return []

    server.answers = answers  # type: ignore[method-assign]

    with pytest.raises(NoServerError):
        link.call("shop", "a", {})

    ids = [call.id for call in server.calls]
    assert len(ids) > 1
    assert len(set(ids)) == 1
    assert server.received[-1] == Cancel(ids=[ids[0]])
    assert any(isinstance(message, Hello) for message in server.received[2:])


def test_where_no_server_is_known_to_be_a_call_fails_unsent_until_one_speaks(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    link = Link(transport, cells, patience=PATIENT, alone="`papermill` started this kernel")
    server.here = False

    for _ in range(2):
        with pytest.raises(NoServerError, match="papermill"):
            link.call("shop", "a", {})

    assert server.received == [Hello(), Hello()]  # what nobody waits for is never run later
    server.here = True
    assert link.call("shop", "a", {}).value.echo == {}
    assert [message.type for message in server.received] == ["hello", "hello", "hello", "call"]


def test_only_the_first_call_of_a_kernel_without_a_server_waits_long(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    link = Link(transport, cells, patience=HASTY)
    server.here = False
    with pytest.raises(NoServerError):
        link.call("shop", "a", {})
    sent = len(server.calls)
    link.patience = PATIENT  # a long wait would be one of a minute

    with pytest.raises(NoServerError, match="none has answered"):
        link.call("shop", "a", {})
    assert len(server.calls) == sent

    server.here = True
    transport.tell(Pong(unknown=[]))  # the server was only busy
    assert link.call("shop", "a", {}).value.echo == {}


def test_a_server_that_speaks_during_the_short_wait_gets_the_call(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    link = Link(transport, cells, patience=replace(PATIENT, alone=60), alone="`papermill` started this kernel")
    server.here = False
    said_hello = threading.Event()
    answers = server.answers

    def answer(message: Any) -> Any:
        said_hello.set()
        return answers(message)

    server.answers = answer  # type: ignore[method-assign]

    def come() -> None:
        assert said_hello.wait(60)
        while not link._pending.ids:  # the wait begins right after the hello
            pass
        server.here = True
        transport.tell(Welcome(server_version="0.1.0", url="http://localhost:8888/lab"))

    thread = threading.Thread(target=come)
    thread.start()
    assert link.call("shop", "a", {}).value.echo == {}
    thread.join()


def test_call_that_was_answered_is_never_repeated(link: Link, server: ServerEnd) -> None:
    link.patience = HASTY
    server.script = lambda call: [Running(id=call.id, request_id="r1")]

    with pytest.raises(NoServerError):
        link.call("shop", "a", {})

    assert len(server.calls) == 1


def test_server_that_answers_pings_is_waited_for(link: Link, server: ServerEnd, transport: FakeTransport) -> None:
    link.patience = HASTY
    pings: list[Ping] = []

    def answers(message: Any) -> Any:
        server.received.append(message)
        if isinstance(message, Ping):
            pings.append(message)
            if len(pings) == 16:  # so many take longer than the patience for silence
                return [reply(server.calls[0], structured={"done": True})]
            return [Pong(unknown=[])]
        return [Waiting(id=message.id, request_id="r1")] if isinstance(message, Call) else []

    server.answers = answers  # type: ignore[method-assign]

    assert link.call("shop", "a", {}).value.done is True
    assert pings[0].ids == [server.calls[0].id]
    assert len(server.calls) == 1


def test_what_the_server_takes_for_unfinished_and_nobody_waits_for_is_withdrawn_once_more(
    link: Link, server: ServerEnd, transport: FakeTransport
) -> None:
    def answers(message: Any) -> Any:
        server.received.append(message)
        if isinstance(message, Call):
            transport.receive(to_json(Unfinished(ids=["long ago", message.id])))
            return [reply(message, structured={"done": True})]
        return []

    server.answers = answers  # type: ignore[method-assign]
    assert link.call("shop", "a", {}).value.done is True
    assert [message for message in server.received if isinstance(message, Cancel)] == [Cancel(ids=["long ago"])]


def test_server_that_was_not_asked_for_a_long_time_is_not_taken_for_lost(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    now = [0.0]
    link = Link(transport, cells, patience=replace(PATIENT, lost=1), clock=lambda: now[0])

    def answers(message: Any) -> Any:
        server.received.append(message)
        if isinstance(message, Ping):
            return [reply(server.calls[0], structured={"done": True})]
        now[0] += 1
        return [Waiting(id=message.id, request_id="r1")] if isinstance(message, Call) else []

    def stop(kind: str, content: Any, cell: Cell) -> None:
        now[0] += 1000  # the process is stopped, or a cell blocks its loop

    server.answers = answers  # type: ignore[method-assign]
    transport.publish = stop  # type: ignore[method-assign]  # while the card is shown

    assert link.call("shop", "a", {}).value.done is True


def test_wait_that_a_new_server_does_not_know_was_interrupted(
    link: Link, server: ServerEnd, transport: FakeTransport
) -> None:
    def answers(message: Any) -> Any:
        server.received.append(message)
        if isinstance(message, Ping):
            return [Pong(unknown=message.ids)]
        return [Waiting(id=message.id, request_id="r1")] if isinstance(message, Call) else []

    server.answers = answers  # type: ignore[method-assign]

    with pytest.raises(ToolCallInterruptedError):
        link.call("shop", "a", {})

    assert link.welcome is None
    assert transport.texts[-1].startswith("✗ shop.a(…) — cut off")


@pytest.mark.parametrize(
    ("then", "patience", "error"),
    [
        (
            lambda ping: [Pong(unknown=ping.ids)],
            PATIENT,
            "ToolCallInterruptedError: the agent's turn was cut off: the Jupyter",
        ),
        (lambda _ping: [], HASTY, "NoServerError: the agent's turn was cut off: the agentbox server has not answered"),
    ],
    ids=["a new server does not know it", "no server answers"],
)
async def test_a_turn_whose_server_is_gone_says_that_it_was_cut_off_and_can_be_gone_on_with(
    link: Link, server: ServerEnd, then: Any, patience: Patience, error: str
) -> None:
    link.patience = patience
    news = TurnEvent(id="q1", event={"type": "turn_started"})

    def answers(message: Any) -> Any:
        return then(message) if isinstance(message, Ping) else [news]

    server.answers = answers  # type: ignore[method-assign]

    async def act(_news: TurnNews) -> None:
        pass

    with pytest.raises(AgentBoxError) as raised:
        await link.run_turn(StartTurn(id="q1", prompt="Go", options={}), act)

    said = f"{type(raised.value).__name__}: {raised.value}"
    assert said.startswith(error)
    assert said.endswith("`%agent show` says how far it came, and the next `%%agent` goes on with the thread.")


def test_unanswered_question_is_repeated_although_the_server_does_not_know_it(link: Link, server: ServerEnd) -> None:
    def answers(message: Any) -> Any:
        server.received.append(message)
        if isinstance(message, Ping):
            return [Pong(unknown=message.ids)]
        asked = [each for each in server.received if isinstance(each, GetModule)]
        return [reply(message)] if len(asked) == 8 and isinstance(message, GetModule) else []

    server.answers = answers  # type: ignore[method-assign]

    assert "content" in link.get_module("shop")


def test_question_that_a_server_which_answers_does_not_take_fails(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    now = [0.0]
    link = Link(transport, cells, patience=replace(PATIENT, attach=1), clock=lambda: now[0])

    def answers(message: Any) -> Any:
        server.received.append(message)
        now[0] += 0.1
        return [Pong(unknown=message.ids)] if isinstance(message, Ping) else []

    server.answers = answers  # type: ignore[method-assign]

    with pytest.raises(ToolCallInterruptedError, match="does not know"):
        link.call("shop", "a", {})

    assert len([message for message in server.received if isinstance(message, Ping)]) >= 2
    assert server.received[-1] == Cancel(ids=[server.calls[0].id])


def test_glance_gives_up_in_time(link: Link, server: ServerEnd) -> None:
    server.answers = lambda _message: [Pong(unknown=[])]  # type: ignore[method-assign]  # alive, but no answer

    with pytest.raises(NoServerError):
        link.list_servers(within=0.02)


def test_messages_that_are_none_are_dropped_and_named_in_the_error(
    link: Link, server: ServerEnd, transport: FakeTransport
) -> None:
    link.patience = HASTY
    server.here = False
    transport.receive({"type": "welcome", "version": 2})
    transport.receive(["nonsense"])
    transport.receive({"type": "reply", "id": "nobody", "content": {}})

    with pytest.raises(NoServerError, match="same version"):
        link.call("shop", "a", {})


def test_interrupt_withdraws_the_call_and_is_raised(link: Link, server: ServerEnd, transport: FakeTransport) -> None:
    class Interrupted(KeyboardInterrupt):
        pass

    def interrupt(kind: str, content: Any, cell: Cell) -> None:
        raise Interrupted

    transport.publish = interrupt  # type: ignore[method-assign]  # while the card is shown

    with pytest.raises(Interrupted):
        link.call("shop", "a", {})

    assert server.received[-1] == Cancel(ids=[server.calls[0].id])


def test_card_that_cannot_be_shown_does_not_stop_the_call(link: Link, transport: FakeTransport) -> None:
    def fail(kind: str, content: Any, cell: Cell) -> None:
        raise OSError

    transport.publish = fail  # type: ignore[method-assign]

    assert link.call("shop", "a", {"x": 1}).value.echo.x == 1


def test_second_notice_of_the_same_wait_shows_one_card(link: Link, server: ServerEnd, transport: FakeTransport) -> None:
    server.script = lambda call: [Waiting(id=call.id, request_id="r1"), *approved(call)]

    link.call("shop", "a", {})

    assert [kind for kind, _, _ in transport.published] == ["display_data", "update_display_data"]


def test_call_that_a_rule_allows_shows_a_card_once_its_server_asks_something(
    link: Link, server: ServerEnd, transport: FakeTransport
) -> None:
    server.script = lambda call: [
        *(Running(id=call.id, request_id="r1"), Asked(id=call.id, request_id="r1"), Asked(id=call.id, request_id="r1")),
        reply(call, structured={"ok": True}),
    ]
    link.call("shop", "restock", {})
    shown = [content for kind, content, _ in transport.published if kind == "display_data"]
    assert [content["data"]["text/plain"].partition(".")[0] for content in shown] == ["shop"]
    assert "shop.restock is running, and its server is waiting for an answer" in shown[0]["data"]["text/plain"]


def test_call_that_a_rule_allows_shows_no_card(link: Link, server: ServerEnd, transport: FakeTransport) -> None:
    server.script = lambda call: [Running(id=call.id, request_id="r1"), reply(call, structured={})]

    link.call("shop", "a", {})

    assert transport.published == []


def test_many_threads_call_at_once_and_each_gets_its_own_answer(link: Link) -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = link.call("shop", "a", {"number": number}).value.echo.number

    threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert results == {number: number for number in range(50)}


def test_interrupted_cell_ends_the_waits_of_its_threads(link: Link, server: ServerEnd, parent: dict[str, Any]) -> None:
    asked = threading.Event()
    errors: list[BaseException] = []

    def script(call: Call) -> list[Any]:
        asked.set()
        return [Pong(unknown=[])]

    def work() -> None:
        try:
            link.call("shop", "a", {})
        except ApprovalCancelledError as error:
            errors.append(error)

    server.script = script
    thread = threading.Thread(target=work)
    thread.start()
    assert asked.wait(60)
    link.cell_interrupted(Cell({"header": {"msg_id": "another"}}))
    assert errors == []
    link.cell_interrupted(Cell(parent))
    thread.join(60)

    assert len(errors) == 1
    assert Cancel(ids=[server.calls[0].id]) in server.received


async def test_gathered_calls_wait_at_the_same_time(link: Link, server: ServerEnd, transport: FakeTransport) -> None:
    def answer_both(call: Call) -> list[Any]:
        both = server.calls
        return [reply(each, structured={"echo": each.arguments}) for each in both] if len(both) == 2 else []

    server.script = answer_both

    results = await asyncio.gather(*[link.call_async("shop", "a", {"n": n}) for n in range(2)])

    assert [result.value.echo.n for result in results] == [0, 1]


async def test_cancelled_task_withdraws_its_call(link: Link, server: ServerEnd) -> None:
    asked = asyncio.Event()

    def script(_call: Call) -> list[Any]:
        asked.set()
        return []

    server.script = script
    task = asyncio.create_task(link.call_async("shop", "a", {}))
    await asyncio.wait_for(asked.wait(), 60)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert server.received[-1] == Cancel(ids=[server.calls[0].id])


async def test_asynchronous_call_gives_up_like_the_blocking_one(link: Link, server: ServerEnd) -> None:
    link.patience = HASTY
    server.here = False

    with pytest.raises(NoServerError):
        await link.call_async("shop", "a", {})


def test_a_wait_in_another_thread_wakes_the_loop_in_which_an_interrupt_is_handled(
    server: ServerEnd, transport: FakeTransport, cells: Cells
) -> None:
    woken = threading.Event()
    link = Link(transport, cells, patience=HASTY, wake=woken.set)
    server.script = lambda call: [Waiting(id=call.id, request_id="r1")]

    with pytest.raises(NoServerError):
        link.call("shop", "a", {})
    assert not woken.is_set()  # the loop does not wait where its own thread does

    with pytest.raises(NoServerError):
        asyncio.run(asyncio.to_thread(link.call, "shop", "a", {}))
    assert woken.is_set()
