"""`%%agent` in a notebook: a real server, real kernels, a person over REST, and a model whose answers are written."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient

from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.events import THREAD_EVENT
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE, ITEM_MIME_TYPE
from jupyter_agentbox.sandbox.server.probes import select_level
from jupyter_agentbox.testing import MockModelServer

from .conftest import TIMEOUT, Cell, Kernel, Server, for_one_test, server_in_thread
from .test_sandbox import install

RUN_CODE = "run_code"
WORDS = "**Forty-two.** <img src=x>"


@pytest.fixture(scope="module")
def agent_server(model: MockModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ("--AgentBoxApp.agent_model=openai:scripted", f"--AgentBoxApp.agent_base_url={model.base_url}")
    with server_in_thread(tmp_path_factory.mktemp("agent"), options) as started:
        yield started


@pytest.fixture
def server(
    agent_server: Server, model: MockModelServer, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> Iterator[Server]:
    model.reset()
    with for_one_test(agent_server, jp_asyncio_loop) as lent:
        yield lent


@asynccontextmanager
async def notebook_kernel(server: Server, path: str, name: str = "python3") -> AsyncIterator[Kernel]:
    """Start a kernel for a notebook, and wait until the server has loaded the kernel side there."""
    async with server.kernel(path, name) as kernel:
        await has_agents(kernel)
        yield kernel


async def has_agents(kernel: Kernel) -> None:
    """Wait until the server has loaded the kernel side."""
    while (await kernel.run("'agent' in get_ipython().magics_manager.magics['cell']")).value != "True":
        pass


@asynccontextmanager
async def running(kernel: Kernel, code: str) -> AsyncIterator[asyncio.Task[Cell]]:
    """Run a cell while the block does what a person does."""
    cell = asyncio.create_task(kernel.run(code))
    try:
        async with asyncio.timeout(TIMEOUT):
            yield cell
            await cell
    finally:
        cell.cancel()


async def approve(server: Server, tool: str = RUN_CODE, decision: str = "allow_once", **more: Any) -> Any:
    approval = await server.pending(tool)
    await server.decide(approval, decision, **more)
    return approval


async def asked(model: MockModelServer, count: int) -> None:
    await asyncio.to_thread(model.wait_for_requests, count, TIMEOUT)


async def interrupt(server: Server, kernel: Kernel) -> None:
    code, _ = await server.api("POST", f"api/kernels/{kernel.id}/interrupt")
    assert code == 204


def items(cell: Cell) -> list[dict[str, Any]]:
    """The items that the cell shows, as they were at last."""
    shown: dict[str, dict[str, Any]] = {}
    for data in [*cell.displays, *cell.updates]:
        if ITEM_MIME_TYPE in data:
            item = data[ITEM_MIME_TYPE]["item"]
            shown[item["id"]] = {**item, "markdown": data["text/markdown"]}
    return list(shown.values())


def outputs_told(model: MockModelServer) -> list[str]:
    """What the model was told of its calls in the last request."""
    body = model.requests[-1].json()
    return [str(one["output"]) for one in body["input"] if one.get("type") == "function_call_output"]


async def threads(server: Server) -> list[Any]:
    _, page = await server.api("GET", "jupyter-agentbox/threads")
    return list(page["threads"])


async def last_turn(server: Server) -> Any:
    """The last turn of the thread that changed last."""
    entry = (await threads(server))[0]
    _, read = await server.api("GET", f"jupyter-agentbox/threads/{entry['id']}")
    return read["turns"][-1]


async def test_words_appear_under_the_cell_and_the_answer_is_set_apart(
    server: Server, model: MockModelServer, ipykernel: str
) -> None:
    model.enqueue_message(WORDS, phase="final_answer", deltas=[WORDS[:7], WORDS[7:15], WORDS[15:]])

    async with notebook_kernel(server, "words.ipynb", ipykernel) as kernel:
        cell = await kernel.run("%%agent --new\nWhat is 6 * 7?\n{x} $y %magic")

    assert cell.error is None
    (item,) = items(cell)
    assert (item["type"], item["text"], item["phase"]) == (
        "agent_message",
        "**Forty-two.** <img src=x>",
        "final_answer",
    )
    assert item["markdown"] == "---\n\n**Forty-two.** <\u2060img src=x>"
    assert model.requests[0].user_texts() == ["What is 6 * 7?\n{x} $y %magic"]


CODE = """
import asyncio
await asyncio.sleep(0)
print("printed")
%precision 2
answer = !echo from the shell
display({"text/plain": "shown"}, raw=True)
answer[0]
"""


async def test_approved_code_runs_as_a_cell_does_and_the_model_is_told_its_output(
    server: Server, model: MockModelServer, ipykernel: str
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": CODE})
    model.enqueue_message("Done.")

    async with notebook_kernel(server, "code.ipynb", ipykernel) as kernel:
        await kernel.run("before = len(In); 'of before'")
        async with running(kernel, "%%agent --new\nGo") as cell:
            approval = await approve(server)
        done = cell.result()
        after = await kernel.run("print(answer); (_, max(Out) == before - 1, len(In) - before, In[-2][:20])")

    assert done.error is None
    assert done.stdout.splitlines()[-1] == "printed"
    assert done.value == "'from the shell'"
    assert [data["text/plain"] for data in done.displays if ITEM_MIME_TYPE not in data][-1] == "shown"
    call = approval["call"]
    assert (call["server"], call["arguments"], call["notebook_path"], call["cell_id"]) == (
        "notebook",
        {"code": CODE},
        "code.ipynb",
        "cell-1",
    )
    turn = await last_turn(server)
    assert (call["thread_id"], call["turn_id"]) == (turn["thread_id"], turn["id"])
    (told,) = outputs_told(model)
    assert [line for line in ("printed", "shown", "'from the shell'") if line not in told] == []
    run = next(item for item in items(done) if item["type"] == "code_run")
    assert run["markdown"] == f"```python\n{CODE}\n```"
    assert run["status"] == "completed"
    # One execution of a cell before, one of the agent's: nothing of its code is in the history.
    assert after.stdout == "['from the shell']\n"
    assert after.value == "('of before', True, 2, 'await get_ipython().')"


async def test_an_error_is_shown_and_told_and_the_turn_goes_on(
    server: Server, model: MockModelServer, ipykernel: str
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "prices = {}\nprices['tea']"})
    model.enqueue_tool_call(RUN_CODE, {"code": "prices['tea'] = 3\nprices"})
    model.enqueue_message("Repaired.")

    async with notebook_kernel(server, "error.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            await approve(server)
            await approve(server)
        done = cell.result()

    assert (done.error, done.value) == ("KeyError: 'tea'", "{'tea': 3}")
    told = outputs_told(model)
    assert "KeyError: 'tea'" in told[0]
    assert "prices['tea']" in told[0]
    assert [item["status"] for item in items(done) if item["type"] == "code_run"] == ["failed", "completed"]


async def test_a_plot_appears_with_its_code_and_the_model_hears_of_it(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(
        RUN_CODE, {"code": "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"}
    )
    model.enqueue_message("Plotted.")

    async with notebook_kernel(server, "plot.ipynb") as kernel, running(kernel, "%%agent --new\nGo") as cell:
        await approve(server)

    done = cell.result()
    kinds = ["image/png" in data for data in done.displays if CARD_MIME_TYPE not in data]
    shown = [data.get(ITEM_MIME_TYPE, {}).get("item", {}).get("type") for data in done.displays]
    assert (done.value, kinds.count(True), shown[-1]) == (None, 1, "agent_message")
    assert "(1 image was displayed to the person)" in outputs_told(model)[0]


async def test_a_broken_display_of_the_code_is_no_failure_of_the_cell(
    server: Server, model: MockModelServer, ipykernel: str
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "class Broken:\n    def __repr__(self): 1 / 0\nBroken()"})
    model.enqueue_message("Done.")

    async with notebook_kernel(server, "broken.ipynb", ipykernel) as kernel:
        content = {"code": "%%agent --new\nGo", "silent": False, "store_history": True, "allow_stdin": False}
        message_id = kernel.client.session.msg("execute_request", content)
        kernel.client.shell_channel.send(message_id)
        await approve(server)
        async with asyncio.timeout(TIMEOUT):
            reply = await kernel.client.get_shell_msg()

    assert reply["content"]["status"] == "ok"


async def test_rejected_code_does_not_run_and_the_model_hears_why(
    server: Server, model: MockModelServer, ipykernel: str
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "touched = True"})
    model.enqueue_message("As you wish.")

    async with notebook_kernel(server, "reject.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            approval = await approve(server, decision="reject_once", reason="not now")
        after = await kernel.run("'touched' in globals()")

    done = cell.result()
    assert (done.error, after.value) == (None, "False")
    assert "not now" in outputs_told(model)[0]
    assert {"request_id": approval["id"]} in [data.get(CARD_MIME_TYPE) for data in done.displays]
    assert any("not now" in data["text/plain"] for data in done.updates if CARD_MIME_TYPE in data)


async def test_half_a_character_in_what_the_model_says_is_shown_and_ends_nothing(
    server: Server, model: MockModelServer
) -> None:
    model.enqueue_message("half \ud83d, whole")

    async with notebook_kernel(server, "half.ipynb") as kernel, running(kernel, "%%agent --new\nGo") as cell:
        pass

    done = cell.result()
    assert done.error is None
    shown = [data["text/plain"] for data in (*done.displays, *done.updates) if "text/plain" in data]
    assert any("half" in text and "whole" in text for text in shown)


async def test_edited_code_is_what_runs_and_what_the_model_is_told_of(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "print('mine')"})
    model.enqueue_message("Fine.")

    async with notebook_kernel(server, "edit.ipynb") as kernel, running(kernel, "%%agent --new\nGo") as cell:
        await approve(server, arguments={"code": "print('yours')"})

    assert cell.result().stdout == "yours\n"
    assert "print('yours')" in outputs_told(model)[0]


async def test_a_call_of_the_code_asks_for_itself_and_carries_thread_and_turn(
    server: Server, model: MockModelServer, ipykernel: str
) -> None:
    code = "from jupyter_agentbox import tools\nlen(tools.shop.list_orders())"
    model.enqueue_tool_call(RUN_CODE, {"code": code})
    model.enqueue_message("Counted.")

    async with notebook_kernel(server, "call.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            await approve(server)
            approval = await approve(server, "list_orders")
        later = asyncio.create_task(kernel.run("tools.shop.list_orders();"))
        after = await approve(server, "list_orders")
        await later

    assert cell.result().error is None
    turn = await last_turn(server)
    assert (approval["call"]["thread_id"], approval["call"]["turn_id"]) == (turn["thread_id"], turn["id"])
    assert (after["call"]["thread_id"], after["call"]["turn_id"]) == (None, None)
    assert [item["status"] for item in turn["items"] if item["type"] == "tool_call"] == ["completed"]


IN_BACKGROUND = """
import threading
from jupyter_agentbox import tools
calling = threading.Thread(target=tools.shop.list_orders)
calling.start()
while not go_on.exists(): pass
"""


async def test_a_call_that_outlasts_its_code_is_waited_for_no_longer_than_until_its_decision(
    server: Server, model: MockModelServer
) -> None:
    go_on = server.root / "go-on"
    model.enqueue_tool_call(RUN_CODE, {"code": IN_BACKGROUND})
    model.enqueue_message("Done.", is_held=True)

    async with notebook_kernel(server, "background.ipynb") as kernel:
        await kernel.run(f"import pathlib; go_on = pathlib.Path({str(go_on)!r})")
        async with running(kernel, "%%agent --new\nGo"):
            await approve(server)
            approval = await server.pending("list_orders")
            go_on.touch()
            await asked(model, 2)
            before = (await threads(server))[0]["state"]
            await server.decide(approval)
            after = (await threads(server))[0]["state"]
            model.release()

    assert (before, after) == ("waiting", "working")


NESTED = """
%agent mode deny_all
try:
    await get_ipython().find_cell_magic('agent').run('--new', 'Do more')
except Exception as error:
    print(error)
import subprocess, sys
begin = "from jupyter_agentbox import AsyncAgent; AsyncAgent('openai:x', api_key='k')"
try:
    exec(begin)
except Exception as error:
    print(error)
print(subprocess.run([sys.executable, "-c", begin], stderr=subprocess.PIPE, text=True).stderr.strip().splitlines()[-1:])
"""


async def test_code_of_a_turn_starts_no_agent_and_changes_no_thread(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": NESTED})
    model.enqueue_message("Refused.")

    async with notebook_kernel(server, "nested.ipynb") as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            await approve(server)
        in_turn, requests = await threads(server), len(model.requests)

        # The same code, run by the person, does both.
        model.enqueue_message("Done.")
        own = await kernel.run(NESTED)
        after = await threads(server)

    done = cell.result()
    assert (done.error, requests) == (None, 2)
    assert "code of an agent cannot change threads" in done.stdout
    assert "code that an agent runs cannot start another one" in done.stdout
    assert done.stdout.count("code that an agent runs cannot start agents") == 2
    assert ("refused" in own.stdout, "cannot start" in own.stdout) == (False, False)
    nested = [entry for entry in in_turn if entry["notebook_path"] == "nested.ipynb"]
    assert [(entry["approval_mode"], entry["last_prompt"]) for entry in nested] == [("ask", "Go")]
    nested = [entry for entry in after if entry["notebook_path"] == "nested.ipynb"]
    assert {(entry["approval_mode"], entry["last_prompt"]) for entry in nested} == {
        ("deny_all", "Go"),
        ("ask", "Do more"),
    }


async def goes_on(server: Server, kernel: Kernel, model: MockModelServer) -> None:
    """The thread goes on with the next cell, and knows what was asked before."""
    model.enqueue_message("Still here.")
    cell = await kernel.run("%%agent\nAre you there?")
    assert cell.error is None
    assert model.requests[-1].user_texts() == ["Go", "Are you there?"]


async def test_interrupt_while_the_model_thinks(server: Server, model: MockModelServer, ipykernel: str) -> None:
    model.enqueue_message("Too late.", is_held=True)

    async with notebook_kernel(server, "thinks.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            await asked(model, 1)
            await interrupt(server, kernel)
        assert cell.result().tracebacks == [["KeyboardInterrupt: the agent's turn was interrupted"]]
        await goes_on(server, kernel, model)
        _, read = await server.api("GET", f"jupyter-agentbox/threads/{(await threads(server))[0]['id']}")

    assert [turn["status"] for turn in read["turns"]] == ["interrupted", "completed"]


async def test_interrupt_while_a_person_is_asked(server: Server, model: MockModelServer, ipykernel: str) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "touched = True"})

    async with notebook_kernel(server, "asked.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            approval = await server.pending(RUN_CODE)
            await interrupt(server, kernel)
        assert cell.result().tracebacks == [["KeyboardInterrupt: the agent's turn was interrupted"]]
        withdrawn = await server.approval(lambda found: found["id"] == approval["id"] and found["status"] != "pending")
        await goes_on(server, kernel, model)

    assert withdrawn["status"] == "cancelled"


@pytest.mark.parametrize(
    "waiting",
    [
        "import time; print('begun'); time.sleep(60)",
        "print('begun')\nwhile True: pass",
        "import asyncio; print('begun', flush=True)\nawait asyncio.sleep(60)",
        "import time; print('begun', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass",
    ],
)
async def test_interrupt_while_code_runs(server: Server, model: MockModelServer, ipykernel: str, waiting: str) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": f"ran = 1\n{waiting}"})

    async with notebook_kernel(server, "runs.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            await approve(server)
            await kernel.printed("begun")
            await interrupt(server, kernel)
        assert cell.result().tracebacks == [["KeyboardInterrupt: the agent's turn was interrupted"]]
        assert (await kernel.run("ran")).value == "1"
        await goes_on(server, kernel, model)
        assert len(model.requests) == 2


async def test_interrupt_while_a_tool_of_the_code_waits(server: Server, model: MockModelServer, ipykernel: str) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "from jupyter_agentbox import tools\ntools.shop.list_orders()"})

    async with notebook_kernel(server, "tool.ipynb", ipykernel) as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            code = await approve(server)
            approval = await server.pending("list_orders")
            await interrupt(server, kernel)
        assert cell.result().tracebacks == [["KeyboardInterrupt: the agent's turn was interrupted"]]
        withdrawn = await server.approval(lambda found: found["id"] == approval["id"] and found["status"] != "pending")
        turn = await ended_turn(server)
        await goes_on(server, kernel, model)

    assert withdrawn["status"] == "cancelled"
    ended = [(item["status"], item["request_id"]) for item in turn["items"] if "request_id" in item]
    assert ended == [("interrupted", code["id"]), ("interrupted", approval["id"])]


async def test_a_turn_that_is_stopped_elsewhere_breaks_off_its_code(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "import time\nprint('begun')\ntime.sleep(60)"})

    async with notebook_kernel(server, "stop.ipynb") as kernel:
        async with running(kernel, "%%agent --new\nGo") as cell:
            await approve(server)
            await kernel.printed("begun")
            turn = await last_turn(server)
            code, _ = await server.api("POST", f"jupyter-agentbox/turns/{turn['id']}/interrupt", {})
            assert code == 200
        assert cell.result().tracebacks == [["KeyboardInterrupt: the agent's turn was interrupted"]]
        await goes_on(server, kernel, model)


async def test_a_page_is_told_that_a_cell_waits_where_and_what_happened_in_order(
    server: Server, model: MockModelServer
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "6 * 7"})
    model.enqueue_message("It is 42.")

    async with notebook_kernel(server, "page.ipynb") as kernel:
        async with running(kernel, "%%agent --new\nWhat is it?"):
            approval = await server.pending(RUN_CODE)
            while (entry := (await threads(server))[0])["state"] != "waiting":
                pass
            await server.decide(approval, "allow_once")
        assert (entry["kernel_id"], entry["notebook_path"]) == (kernel.id, "page.ipynb")
        assert (entry["last_prompt"], entry["turn_id"]) == ("What is it?", approval["call"]["turn_id"])
        address = f"{server.url}jupyter-agentbox/turns/{entry['turn_id']}/events"
        headers = {"Authorization": f"token {server.token}"}
        stream = await AsyncHTTPClient().fetch(address, headers=headers, request_timeout=TIMEOUT)
        after = (await threads(server))[0]

    told = [json.loads(line.partition(": ")[2]) for line in stream.body.decode().splitlines() if line[:5] == "data:"]
    assert [event["type"] for event in told if event["type"] != "agent_message_delta"][:2] == [
        "turn_started",
        "item_started",
    ]
    [asked_for] = [event for event in told if event["type"] == "approval_requested"]
    assert asked_for["request_id"] == approval["id"]
    assert told[-1]["turn"]["status"] == "completed"
    assert (after["state"], after["kernel_id"], after["steps"]) == ("idle", None, 2)


async def ended_turn(server: Server) -> Any:
    """The last turn, once it has ended."""
    async with asyncio.timeout(TIMEOUT):
        while (turn := await last_turn(server))["status"] == "in_progress":
            await server.event(THREAD_EVENT)
    return turn


async def test_the_end_of_the_kernel_interrupts_the_turn(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "touched = True"})

    async with notebook_kernel(server, "death.ipynb") as kernel:
        cell = asyncio.create_task(kernel.run("%%agent --new\nGo"))
        await server.pending(RUN_CODE)
        await server.api("DELETE", f"api/kernels/{kernel.id}")
        cell.cancel()
        turn = await ended_turn(server)

    assert turn["status"] == "interrupted"


SLEEPS = "import time; print('begun'); time.sleep(60)"
CALLS = "from jupyter_agentbox import tools; tools.shop.list_orders()"


@pytest.mark.parametrize("code", ["", SLEEPS, CALLS], ids=["the model thinks", "code runs", "a tool of the code waits"])
async def test_a_kernel_that_dies_interrupts_the_turn_and_the_next_one_goes_on(
    server: Server, model: MockModelServer, code: str
) -> None:
    if code:
        model.enqueue_tool_call(RUN_CODE, {"code": code})
    else:
        model.enqueue_message("Too late.", is_held=True)

    async with notebook_kernel(server, "dies.ipynb") as kernel:
        pid = int((await kernel.run("import os; os.getpid()")).value or 0)
        cell = asyncio.create_task(kernel.run("%%agent --new\nGo"))
        async with asyncio.timeout(TIMEOUT):
            await asked(model, 1)
            if code:
                await approve(server)
            if code == SLEEPS:
                await kernel.printed("begun")
            elif code == CALLS:
                await server.pending("list_orders")
        os.kill(pid, signal.SIGKILL)
        turn = await ended_turn(server)
        cell.cancel()
        await kernel.ready()  # Jupyter has started another one
        await has_agents(kernel)
        await goes_on(server, kernel, model)

    assert turn["status"] == "interrupted"
    assert [item["type"] for item in turn["items"] if item.get("status") == "in_progress"] == []


async def test_a_restarted_kernel_goes_on_with_the_thread(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "touched = True"})

    async with server.kernel("restart.ipynb") as kernel:
        await has_agents(kernel)
        cell = asyncio.create_task(kernel.run("%%agent --new\nGo"))
        approval = await server.pending(RUN_CODE)
        await server.api("POST", f"api/kernels/{kernel.id}/restart")
        cell.cancel()
        ended = await server.approval(lambda found: found["id"] == approval["id"] and found["status"] != "pending")
        turn = await ended_turn(server)
        await kernel.ready()
        await has_agents(kernel)
        await goes_on(server, kernel, model)

    assert ended["status"] == "orphaned"
    assert [item["status"] for item in turn["items"] if item["type"] == "code_run"] == ["interrupted"]


async def test_a_word_while_it_works_is_heard_and_shown(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "1"})
    model.enqueue_message("In euros.")

    async with notebook_kernel(server, "steer.ipynb") as kernel, running(kernel, "%%agent --new\nGo") as cell:
        approval = await server.pending(RUN_CODE)
        turn = await last_turn(server)
        await server.api("POST", f"jupyter-agentbox/turns/{turn['id']}/steer", {"text": "In euros, please"})
        await server.decide(approval)

    assert "In euros, please" in model.requests[-1].user_texts()
    assert "**You:** In euros, please" in [item["markdown"] for item in items(cell.result())]


async def test_a_turn_that_fails_raises_and_says_why(server: Server, model: MockModelServer) -> None:
    model.enqueue_error(401)

    async with notebook_kernel(server, "fails.ipynb") as kernel:
        cell = await kernel.run("%%agent --new\nGo")

    assert (cell.error or "").startswith("AgentTurnError: the model's server did not accept the key")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--backend lop", "ThreadError: `--backend lop` is not known: it can be loop"),
        ("--mode maybe", "ThreadError: `--mode maybe` is not known"),
        ("--steps 0", "ThreadError: `--steps` must be a number from 1"),
        ("--new --model nobody:x", "AgentConfigurationError: `nobody:x` is not the name of a model"),
        ("--new --model anthropic", "AgentConfigurationError: `anthropic` is not the name of a model"),
    ],
)
async def test_a_wrong_option_asks_no_model(server: Server, model: MockModelServer, line: str, said: str) -> None:
    async with notebook_kernel(server, "options.ipynb") as kernel:
        cell = await kernel.run(f"%%agent {line}\nGo")

    assert (cell.error or "").startswith(said)
    assert cell.traceback == [cell.error]  # and no line that the person has not written
    assert model.requests == []


async def test_commands_show_and_manage_the_threads_of_this_notebook(server: Server, model: MockModelServer) -> None:
    for _ in range(3):
        model.enqueue_message("Yes.")

    async def agent(command: str) -> str:
        cell = await kernel.run(f"%agent {command}")
        assert cell.error is None
        return cell.stdout

    async with notebook_kernel(server, "other.ipynb") as other:
        await other.run("%%agent --thread secret\nMy own")
    async with notebook_kernel(server, "commands.ipynb") as kernel:
        await kernel.run("%%agent --thread sales\nBest product?")
        assert "sales" in await agent("threads")
        assert "secret" not in await agent("threads")
        assert "You: Best product?\nAgent: Yes." in await agent("show")
        assert "UnknownThreadError" in await agent("show secret")
        assert "October" in await agent("name October")
        assert "October" in await agent("fork")
        assert "1 request to" in await agent("usage")
        assert "deny_all" in await agent("mode deny_all")
        assert "`mode maybe` is not known" in await agent("mode maybe")
        assert "openai:other" in await agent("model openai:other")
        await agent("resume October")
        assert "archived" in await agent("archive October")
        assert "October" in await agent("threads --archived")
        await agent("unarchive October")
        assert "removed" in await agent("delete October")
        assert "No turn" in await agent("stop")
        assert "deny_all" in await agent("mode")
        asked_before = len(model.requests)
        await kernel.run("%%agent\nAnd now?")

    assert model.requests[asked_before].json()["model"] == "other"


async def test_the_agent_reads_the_notebook_only_where_the_person_allows_it(
    server: Server, model: MockModelServer
) -> None:
    notebook = {
        "cells": [
            {
                "cell_type": "code",
                "source": "secret_plan = 1",
                "metadata": {},
                "execution_count": 1,
                "outputs": [{"output_type": "stream", "name": "stdout", "text": "its output"}],
            }
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    (server.root / "work" / "context.ipynb").write_text(json.dumps(notebook))
    told = []

    async with notebook_kernel(server, "context.ipynb") as kernel:
        for line in ("--new", "--new --context cells", "--new --context outputs"):
            model.enqueue_tool_call("read_cells", {})
            model.enqueue_message("Read.")
            await kernel.run(f"%%agent {line}\nLook")
            told.append(outputs_told(model)[0])

    assert ["secret_plan" in text for text in told] == [False, True, True]
    assert ["its output" in text for text in told] == [False, False, True]


async def test_variables_are_told_without_their_values(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call("list_variables", {})
    model.enqueue_message("Seen.")

    async with notebook_kernel(server, "variables.ipynb") as kernel:
        await kernel.run("orders = ['secret', 2]")
        await kernel.run("%%agent --new\nLook")

    assert outputs_told(model) == ["orders: list, length 2"]


async def test_a_sandboxed_kernel_without_network_works_and_its_level_is_recorded(
    server: Server, model: MockModelServer
) -> None:
    level = str(select_level(SANDBOX_LEVELS).value)
    install(server.root, "sandboxed", levels=[level])
    model.enqueue_tool_call(RUN_CODE, {"code": "print(6 * 7)"})
    model.enqueue_message("Done.")

    async with (
        notebook_kernel(server, "sandboxed.ipynb", "sandboxed") as kernel,
        running(kernel, "%%agent --new\nGo") as cell,
    ):
        approval = await approve(server)

    assert (cell.result().error, cell.result().stdout) == (None, "42\n")
    assert approval["call"]["isolation"] == level


#: Code of a turn that wants its thread to ask less once the turn is over, and can wait for that or bring it about.
TRY = """
import asyncio, threading, time, uuid
from jupyter_agentbox.exceptions import ThreadBusyError
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.protocol.messages import AgentCommand, Cancel
link, said = runtime.link(), []
def loosen():
    while True:
        try:
            said.append(link.ask(AgentCommand(id=uuid.uuid4().hex, command="mode", arguments=["auto_review"])))
        except ThreadBusyError:
            time.sleep(0.01)
            continue
        except Exception as error:
            said.append(str(error))
        return
"""
LATER = f"{TRY}\nthread = threading.Thread(target=loosen); thread.start()"
AT_ONCE = f"""{TRY}
link._send(Cancel(ids=[id for id, found in link._pending._by_id.items() if found.question.type == "start_turn"]))
thread = threading.Thread(target=loosen); thread.start(); thread.join()
"""


@pytest.mark.parametrize("code", [LATER, AT_ONCE], ids=["after its turn", "after it ended its turn itself"])
@pytest.mark.parametrize("answer", ["reject_once", "allow_once"])
async def test_code_of_a_turn_that_is_over_lets_its_thread_ask_no_less_unless_a_person_agrees(
    server: Server, model: MockModelServer, code: str, answer: str
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": code})
    model.enqueue_message("Done.")

    async with notebook_kernel(server, "loosen.ipynb") as kernel:
        async with running(kernel, "%%agent --new\nGo"):
            await approve(server)
            asked = await server.pending("set_approval_mode")
            assert (await threads(server))[0]["approval_mode"] == "ask"
            await server.decide(asked, answer)
        after = await kernel.run("thread.join(); print(said)")

    assert (asked["call"]["arguments"]["approval_mode"], asked["call"]["turn_id"]) == ("auto_review", None)
    assert ("rejected" in after.stdout) == (answer == "reject_once")
    assert (await threads(server))[0]["approval_mode"] == ("ask" if answer == "reject_once" else "auto_review")


async def test_a_person_is_asked_once_when_a_cell_makes_its_thread_ask_less(
    server: Server, model: MockModelServer
) -> None:
    async with notebook_kernel(server, "looser.ipynb") as kernel:
        for cell in (
            "%%agent --new --mode deny_all",
            "%%agent --mode ask",
            "%%agent",
            "%%agent --new --mode auto_review",
        ):
            model.enqueue_message("Done.")
            async with running(kernel, f"{cell}\nGo") as ran:
                if cell.endswith((" ask", "auto_review")):
                    await approve(server, "set_approval_mode")
            assert ran.result().error is None

    assert [entry["approval_mode"] for entry in await threads(server)][:2] == ["auto_review", "ask"]


@pytest.mark.parametrize(
    "line",
    ["%agent resume loose", "%agent fork loose", "%agent archive", "%agent delete strict", "%%agent --thread loose"],
)
async def test_no_command_leads_to_a_thread_that_asks_less_without_a_person(
    server: Server, model: MockModelServer, line: str
) -> None:
    async with notebook_kernel(server, f"ways-{line.split()[1].strip('-')}.ipynb") as kernel:
        await kernel.run("%agent new loose")
        loose = (await threads(server))[0]["id"]
        await server.api("PATCH", f"jupyter-agentbox/threads/{loose}", {"approval_mode": "auto_review"})
        await kernel.run("%agent new strict")
        async with running(kernel, f"{line}\nGo" if line.startswith("%%") else line):
            await approve(server, "set_approval_mode", "reject_once")
        assert "`strict`: idle, mode ask" in (await kernel.run("%agent show")).stdout

    assert model.requests == []


@pytest.mark.parametrize("line", ["%agent model openai:weak", "%%agent --model openai:weak"])
async def test_no_command_lets_another_model_review_calls_without_a_person(
    server: Server, model: MockModelServer, line: str
) -> None:
    async with notebook_kernel(server, f"reviewer-{len(line)}.ipynb") as kernel:
        await kernel.run("%agent new reviewed")
        reviewed = (await threads(server))[0]["id"]
        await server.api("PATCH", f"jupyter-agentbox/threads/{reviewed}", {"approval_mode": "auto_review"})
        async with running(kernel, f"{line}\nGo" if line.startswith("%%") else line):
            asked = await approve(server, "set_approval_mode", "reject_once")

    assert asked["call"]["arguments"] == {
        "thread": "reviewed",
        "approval_mode": "auto_review",
        "reviewing_model": "openai:weak",
    }
    assert ((await threads(server))[0]["model"], model.requests) == ("openai:scripted", [])
