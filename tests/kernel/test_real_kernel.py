"""The kernel side in real kernels: ipykernel as installed and, where the environment names one, ipykernel 6.30."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE, Call, Cancel, Hello, Running, Waiting

from .conftest import SHOP
from .fakes import ServerEnd, rejected, reply
from .real_kernel import RealKernel, real_kernel

PYTHONS = {"installed": sys.executable, "6.30": os.environ.get("AGENTBOX_TEST_IPYKERNEL_630", "")}
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module", params=list(PYTHONS))
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKernel]:
    python = PYTHONS[request.param]
    if not python:
        pytest.skip("AGENTBOX_TEST_IPYKERNEL_630 names no Python")
    with real_kernel(python, ServerEnd({"my-shop": SHOP}), tmp_path_factory.mktemp("kernel")) as started:
        started.run("from jupyter_agentbox import tools")
        yield started


@pytest.fixture(autouse=True)
def server(kernel: RealKernel) -> ServerEnd:
    """The server's end, with the first script and nothing received."""
    kernel.server.received.clear()
    kernel.server.script = ServerEnd().script
    return kernel.server


def waits(call: Call) -> list[Any]:
    return [Waiting(id=call.id, request_id="r1")]


def states(published: list[dict[str, Any]]) -> list[str]:
    return [each["content"]["execution_state"] for each in published if each["msg_type"] == "status"]


def test_blocked_cell_gets_its_result(kernel: RealKernel, server: ServerEnd) -> None:
    done = kernel.run("print(tools.my_shop.list_orders(status='open', from_=None).echo)")

    assert done.text == "{'status': 'open', 'from': None}\n"
    assert server.calls[0].cell_id == "cell-1"


def test_card_appears_under_the_cell_and_becomes_a_line(kernel: RealKernel, server: ServerEnd) -> None:
    server.script = rejected

    done = kernel.run("tools.my_shop.wait()", cell_id="cell-7")

    (shown,), (finished,) = done.of_type("display_data"), done.of_type("update_display_data")
    assert shown["data"][CARD_MIME_TYPE] == {"request_id": "r1"}
    assert WIDGET not in shown["data"]
    assert finished["data"]["text/plain"] == "✗ my-shop.wait(…) — too many; did not run"
    assert WIDGET not in finished["data"]
    assert done.errors == ["ToolCallRejectedError"]
    assert server.calls[0].cell_id == "cell-7"


@pytest.mark.parametrize("cell_id", [None, "vscode-notebook-cell:/x.ipynb#W0"])
def test_console_and_other_editors_get_text_only(kernel: RealKernel, cell_id: str | None) -> None:
    done = kernel.run("tools.my_shop.wait()", cell_id=cell_id)

    (shown,) = done.of_type("display_data")
    assert sorted(shown["data"]) == sorted([CARD_MIME_TYPE, "text/html", "text/plain"])


def test_kernel_is_seen_as_busy_while_its_cell_waits_and_idle_afterwards(kernel: RealKernel, server: ServerEnd) -> None:
    server.script = waits
    cell = kernel.start("tools.my_shop.wait()")
    kernel.follow(cell, until=lambda message: message["msg_type"] == "display_data")
    cell.published += kernel.settle()[:-2]  # without the states of the question itself

    assert states(cell.published)[-1] == "busy"
    kernel.tell(reply(server.calls[0], structured={}))
    kernel.follow(cell)
    cell.published += kernel.settle()[:-2]
    assert states(cell.published)[-1] == "idle"


def test_interrupt_withdraws_the_call(kernel: RealKernel, server: ServerEnd) -> None:
    server.script = waits
    cell = kernel.start("tools.my_shop.wait()")
    kernel.follow(cell, until=lambda message: message["msg_type"] == "display_data")

    kernel.manager.interrupt_kernel()
    kernel.follow(cell)

    assert cell.errors == ["KeyboardInterrupt"]
    assert kernel.wait_for(Cancel) == [Cancel(ids=[server.calls[0].id])]
    assert cell.of_type("update_display_data")[0]["data"]["text/plain"] == "✗ my-shop.wait(…) — withdrawn"


def test_interrupted_async_cell_withdraws_all_its_calls(kernel: RealKernel, server: ServerEnd) -> None:
    server.script = waits
    cell = kernel.start("import asyncio\nawait asyncio.gather(*[tools.my_shop.wait.aio() for _ in range(3)])")
    for _ in range(3):  # one output, which is displayed for the first call and changes with the others
        kernel.follow(cell, until=lambda message: message["msg_type"].endswith("display_data"))

    kernel.manager.interrupt_kernel()
    kernel.follow(cell)

    assert cell.errors == ["CancelledError"]
    withdrawn: list[str] = []
    for messages in range(1, 4):  # the first call at once, those that end with it together
        withdrawn = [id for each in kernel.wait_for(Cancel, messages) for id in each.ids]
        if len(withdrawn) == 3:
            break
    assert set(withdrawn) == {call.id for call in server.calls}


def test_interrupted_cell_withdraws_the_calls_of_its_threads(kernel: RealKernel, server: ServerEnd) -> None:
    server.script = waits
    cell = kernel.start(
        "import threading\n"
        "def work():\n"
        "    try:\n"
        "        tools.my_shop.wait()\n"
        "    except Exception as error:\n"
        "        caught.append(type(error).__name__)\n"
        "caught = []; thread = threading.Thread(target=work); thread.start(); thread.join()"
    )
    kernel.follow(cell, until=lambda message: message["msg_type"] == "display_data")

    kernel.manager.interrupt_kernel()
    kernel.follow(cell)

    assert cell.errors == ["KeyboardInterrupt"]
    assert kernel.wait_for(Cancel)
    assert kernel.run("thread.join(60); print(caught)").text == "['ApprovalCancelledError']\n"


def test_gathered_calls_of_an_async_cell_wait_at_the_same_time(kernel: RealKernel, server: ServerEnd) -> None:
    def answer_all(_call: Call) -> list[Any]:
        calls = {call.id: call for call in server.calls}  # one that waits for long is repeated
        if len(calls) < 20:
            return []
        return [reply(call, structured={"n": call.arguments["limit"]}) for call in calls.values()]

    server.script = answer_all
    done = kernel.run(
        "import asyncio\n"
        "orders = tools.my_shop.list_orders\n"
        "found = await asyncio.gather(*[orders.aio(status='open', limit=n) for n in range(20)])\n"
        "print([each.n for each in found] == list(range(20)))"
    )

    assert done.text == "True\n"


def test_blocking_call_in_an_async_cell_blocks_and_returns(kernel: RealKernel) -> None:
    done = kernel.run("import asyncio\nawait asyncio.sleep(0)\nprint(tools.my_shop.list_orders(status='open').echo)")

    assert done.text == "{'status': 'open'}\n"


def test_thread_shows_its_card_under_the_cell_that_started_it(kernel: RealKernel, server: ServerEnd) -> None:
    first = kernel.run(
        "import threading\n"
        "go = threading.Event()\n"
        "thread = threading.Thread(target=lambda: go.wait(60) and tools.my_shop.wait()); thread.start()",
        cell_id="first",
    )

    second = kernel.run("go.set(); thread.join(60)", cell_id="second")

    cards = [each for each in second.published if each["msg_type"] == "display_data"]
    assert [each["parent_header"]["msg_id"] for each in cards] == [first.msg_id]
    assert server.calls[0].cell_id == "first"


def test_background_task_shows_its_card_under_its_own_cell(kernel: RealKernel, server: ServerEnd) -> None:
    first = kernel.run(
        "import asyncio\n"
        "later = asyncio.Event()\n"
        "async def work():\n"
        "    await later.wait()\n"
        "    return await tools.my_shop.wait.aio()\n"
        "task = asyncio.create_task(work())",
        cell_id="first",
    )

    second = kernel.run("later.set(); await task", cell_id="second")

    cards = [each for each in second.published if each["msg_type"] == "display_data"]
    assert [each["parent_header"]["msg_id"] for each in cards] == [first.msg_id]
    assert server.calls[0].cell_id == "first"


def test_question_to_a_person_is_shown_also_where_output_is_captured(kernel: RealKernel) -> None:
    done = kernel.run("%%capture\ntools.my_shop.wait()")

    assert len(done.of_type("display_data")) == 1


@pytest.mark.parametrize("jedi", [True, False])
def test_servers_tools_and_keywords_are_completed(kernel: RealKernel, jedi: bool) -> None:
    kernel.run(f"%config Completer.use_jedi = {jedi}")
    kernel.run("tools.my_shop")  # an editor that asks is not kept waiting for what is not there yet

    def completes(code: str, wanted: str) -> bool:
        return any(match.lstrip(".").endswith(wanted) for match in kernel.complete(code))

    assert completes("tools.my", "my_shop")
    assert completes("tools.my_shop.", "list_orders")
    assert completes("tools.my_shop.list_orders(fr", "from_=")
    assert completes("tools.my_shop.list_orders.", "aio")
    assert completes("await tools.my_shop.list_orders.aio(sta", "status=")
    assert completes("from jupyter_agentbox.tools import my", "my_shop")
    assert completes("from jupyter_agentbox.tools.my_shop import li", "list_orders")
    assert completes('tools["my', "my-shop")
    assert completes("%agentbox pen", "pending")
    assert completes("%agentbox tools my", "my_shop")
    assert completes("%agent th", "threads")
    assert completes("%%agent --mode de", "deny_all")


def test_question_mark_shows_signature_types_defaults_and_words(kernel: RealKernel) -> None:
    shown = kernel.inspect("tools.my_shop.list_orders")

    assert "Literal['open', 'closed']" in shown
    assert "limit: int = 20" in shown
    assert "from_: str | None = <not sent>" in shown
    assert "Lists the orders of the shop." in shown
    assert "Sent as `from`." in shown


def test_two_question_marks_show_the_generated_source(kernel: RealKernel) -> None:
    shown = kernel.inspect("tools.my_shop.list_orders", detail_level=1)

    assert "_call('list-orders', {'status': status, 'from': from_, 'limit': limit})" in shown


def test_magic_works_and_is_loaded_once(kernel: RealKernel) -> None:
    done = kernel.run("%load_ext jupyter_agentbox\n%reload_ext jupyter_agentbox\n%agentbox servers")

    assert "tools.my_shop  my-shop  running  2 tools" in done.text
    assert kernel.run("%unload_ext jupyter_agentbox\n%agentbox").errors == []
    assert "UsageError" in kernel.run("%agentbox").text
    kernel.run("%load_ext jupyter_agentbox")


def test_other_comms_of_the_kernel_work_on(kernel: RealKernel) -> None:
    done = kernel.run(
        "import comm, ipywidgets\n"
        "slider = ipywidgets.IntSlider()\n"
        "print(slider.comm.comm_id in comm.get_comm_manager().comms)"
    )

    assert done.text == "True\n"


def test_forked_process_says_that_it_is_no_kernel(kernel: RealKernel) -> None:
    done = kernel.run(
        "import os\n"
        "shop = tools.my_shop\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        shop.wait()\n"
        "    except BaseException as error:\n"
        "        os.write(writer, type(error).__name__.encode())\n"
        "    os._exit(0)\n"
        "print(os.read(reader, 100).decode())"
    )

    assert done.text == "NoServerError\n"


def test_loading_is_light_and_says_nothing_to_the_server(tmp_path: Any, server: ServerEnd) -> None:
    with real_kernel(sys.executable, ServerEnd(), tmp_path) as fresh:
        done = fresh.run(
            "import sys\n"
            "print([name for name in ('ipywidgets', 'jupyter_agentbox.kernel.link') if name in sys.modules])"
        )

        assert done.text == "[]\n"
        assert not [message for message in fresh.server.received if isinstance(message, Hello | Running)]
