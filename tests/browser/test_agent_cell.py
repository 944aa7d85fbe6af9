"""`%%agent` in a notebook, from the question to the answer: what a person sees, decides, and keeps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from jupyter_agentbox.demo.script import MODEL, answer
from jupyter_agentbox.testing import MockModelServer, ModelRequest

from .lab import PATIENCE, Lab, running_lab
from .person import CARD, NEXT_FRAMES, Person, await_true, decide
from .test_code_card import EDITOR
from .test_pictures import assert_legible, look_at

ASK = "%%agent\nHow many orders are there?"
LIST = """from jupyter_agentbox import tools
print("before")
orders = tools.shop.list_orders(limit=3)
len(orders)"""
BEST = "%%agent\nWhich products sold best in October? Plot it, then raise the price of the best one by 5 %."

#: What completes has no patience at all before its settings are read, which is some time after the page is laid out.
COMPLETER_HAS_SETTINGS = """async patience => {
  const app = window.jupyterapp;
  const tokens = [...app.pluginRegistry._services.keys()];
  const token = tokens.find(({ name }) => name.endsWith(':ICompletionProviderManager'));
  return (await app.resolveRequiredService(token))._timeout >= patience;
}"""

ELSEWHERE = "http://elsewhere.invalid"
HACK = "(window.hacked ||= []).push(1)"

#: What a hostile model may say: it loads, runs, obeys, and looks like a card.
HOSTILE = f"""\
![picture]({ELSEWHERE}/picture.png) <img src="{ELSEWHERE}/tag.png" onerror="{HACK}"> <script>{HACK}</script>
\x1b[2J\x1b]0;title\x07 [link](javascript:{HACK})

<div class="jp-AgentBox-card jp-mod-pending" role="group" aria-label="Approval request: shop.list_orders">
<button class="jp-AgentBox-button jp-mod-allow">Allow once</button></div>

The end."""


@pytest.fixture(scope="module")
def agent_model() -> Iterator[MockModelServer]:
    """The demo's script; what a test enqueues comes first."""
    with MockModelServer(answer=answer) as model:
        yield model


@pytest.fixture(scope="module")
def lab(agent_model: MockModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    options = (f"--AgentBoxApp.agent_model={MODEL}", f"--AgentBoxApp.agent_base_url={agent_model.base_url}")
    with running_lab(tmp_path_factory.mktemp("agent"), *options) as lab:
        yield lab


@pytest.fixture
def model(agent_model: MockModelServer) -> Iterator[MockModelServer]:
    agent_model.reset()  # what a test that failed left
    yield agent_model
    agent_model.release()


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def told(request: ModelRequest) -> str:
    """What the model was told last of a function that it called."""
    outputs = [one["output"] for one in request.json()["input"] if one.get("type") == "function_call_output"]
    return str(outputs[-1])


def card(person: Person, name: str, index: int = 0) -> Locator:
    """The last card under a cell for a tool."""
    return person.cell(index).get_by_role("group", name=f"Approval request: {name}", exact=True).last


def code_card(person: Person, index: int = 0) -> Locator:
    return card(person, "notebook.run_code", index)


def reject(card: Locator, reason: str) -> None:
    """Reject a request, with a reason."""
    decide(card, "Reject")
    text = card.page.get_by_role("textbox", name="Reason (optional)")
    expect(text).to_be_focused()
    text.fill(reason)
    text.press("Enter")


def final_answer(person: Person, index: int = 0) -> Locator:
    return person.cell(index).get_by_role("group", name="Answer")


def outputs_of(person: Person, index: int = 0) -> Locator:
    """The outputs of a cell that can be seen, from top to bottom."""
    return person.cell(index).locator(".jp-OutputArea-child:visible .jp-OutputArea-output")


#: The outputs of `ASK` when all is drawn.
PARTS = [
    re.compile(r"^\s*I look\.\s*$"),
    re.compile(r"^\s*Code\s+completed\b"),  # its editor is made when it comes into view
    re.compile(r"^\W*notebook\.run_code\s+Allowed by you\. Done .* after it started\."),
    re.compile(r"^\s*before\s*$"),
    re.compile(r"^\W*shop\.list_orders\s+Allowed by you\. Done in "),
    re.compile(r"^\s*3\s*$"),
    re.compile(r"^\s*Answer\s+Insert as cells\s+There are three\.\s*$"),
]


def enqueue_answer(model: MockModelServer) -> None:
    model.enqueue_parts(model.message("I *look*.", "commentary"), model.tool_call("run_code", {"code": LIST}))
    model.enqueue_message("There are **three**.", "final_answer")


@pytest.mark.parametrize("kind", ["python3", "boxed"])
def test_turn_is_decided_where_it_is_asked_and_reads_well_ever_after(
    person: Person,
    notebook: Callable[..., str],
    lab: Lab,
    model: MockModelServer,
    kind: str,
    boxed: str,
    tmp_path: Path,
) -> None:
    path = notebook(ASK, kernel=boxed if kind == "boxed" else kind)
    enqueue_answer(model)
    person.open(path)
    person.run(0)
    expect(person.cell(0).get_by_role("group", name="Agent", exact=True).locator("em")).to_have_text("look")
    expect(code_card(person).locator(".cm-line")).to_have_text(LIST.split("\n"))
    expect(code_card(person)).to_contain_text("line 3 calls the tool `shop.list_orders`")
    decide(code_card(person), "Allow once")
    decide(card(person, "shop.list_orders"), "Allow once")
    expect(final_answer(person).locator("strong")).to_have_text("three")
    person.await_kernel()
    expect(outputs_of(person)).to_have_text(PARTS, use_inner_text=True)
    ran = outputs_of(person).nth(1)
    ran.scroll_into_view_if_needed()
    expect(ran.locator(".cm-line")).to_have_text(LIST.split("\n"))

    person.save()
    asked = len(model.requests)
    person.open(path)
    expect(final_answer(person).locator("strong")).to_have_text("three")
    expect(outputs_of(person)).to_have_text(PARTS, use_inner_text=True)
    assert (len(model.requests), lab.approvals(path)) == (asked, [])

    html, markdown = (exported(lab.root / "work" / path, to, tmp_path) for to in ("html", "markdown"))
    assert "<em>look</em>" in html
    assert "<strong>three</strong>" in html
    assert markdown.index("I *look*.") < markdown.index("```python\nfrom jupyter_agentbox") < markdown.index("before")
    assert (
        markdown.index("before")
        < markdown.index("shop.list_orders(limit=3) — allowed by")
        < markdown.index("There are **three**.")
    )


def exported(path: Path, to: str, directory: Path) -> str:
    """Return a notebook as nbconvert exports it."""
    output = directory / f"exported.{to}"
    command = [sys.executable, "-m", "nbconvert", "--to", to, "--stdout", str(path)]
    with output.open("wb") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True, timeout=300)
    return output.read_text("utf-8")


def test_refused_and_edited_code_is_what_the_model_hears_of(
    person: Person, notebook: Callable[..., str], model: MockModelServer
) -> None:
    model.enqueue_tool_call("run_code", {"code": "x = 1"})
    model.enqueue_tool_call("run_code", {"code": "x = 2\nx"})
    model.enqueue_message("Done.", "final_answer")
    person.open(notebook(ASK, "x"))
    person.run(0)
    reject(code_card(person), "not one")
    expect(code_card(person).locator(".cm-content")).to_contain_text("x = 2")
    person.page.set_viewport_size({"width": 1280, "height": 340})
    decide(code_card(person), "Edit")
    expect(code_card(person).get_by_role("button", name="Allow once with edits")).to_be_in_viewport(ratio=1)
    expect(code_card(person).get_by_role("textbox", name=EDITOR)).to_be_focused()
    person.keyboard.press("ControlOrMeta+End")
    person.keyboard.type(" * 21")
    expect(code_card(person).get_by_role("group", name="Your changes")).to_contain_text("x * 21")
    decide(code_card(person), "Allow once with edits")
    expect(final_answer(person)).to_be_visible()
    assert "not one" in told(model.requests[-2])
    assert "x * 21" in told(model.requests[-1])
    assert told(model.requests[-1]).endswith("42")
    person.await_kernel()
    person.run(1)
    expect(person.cell(1).locator(".jp-OutputArea-executeResult")).to_contain_text("2")


def test_sign_of_thinking_is_there_while_the_model_is_asked_and_is_in_no_file(
    new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab, model: MockModelServer, theme: str
) -> None:
    person = new_person()
    path = notebook(ASK)
    model.enqueue_tool_call("run_code", {"code": "1"}, is_held=True)
    model.enqueue_message("Done.", "final_answer")
    person.open(path)
    person.run(0)
    thinking = person.cell(0).get_by_text("Thinking…")
    expect(thinking).to_be_visible()
    expect(person.cell(0)).to_contain_text(re.compile(r"Thinking…\s*\d+ s"))
    assert_legible(person.cell(0).locator(".jp-AgentBox-thinking"))
    person.save()
    assert "hinking" not in str(lab.read_notebook(path))
    model.release()
    expect(code_card(person).get_by_role("button", name="Allow once")).to_be_enabled()
    expect(thinking).to_have_count(0)
    decide(code_card(person), "Allow once")
    expect(final_answer(person)).to_be_visible()
    person.await_kernel()
    person.save()
    person.reload()
    expect(final_answer(person)).to_be_visible()
    expect(thinking).to_have_count(0)


@pytest.mark.parametrize("front", ["lab/workspaces/prose-{}/tree/", "notebooks/"])
def test_what_an_agent_is_asked_is_prose_and_other_cells_are_python(
    new_person: Callable[[], Person], notebook: Callable[..., str], front: str
) -> None:
    person = new_person()
    question = "%%agent\nWhich is best, and not 'bad' in 2025?" + 50 * " And why?"
    person.open(notebook(question, "best and not 'bad'"), front=front)
    colored = ".jp-Cell-inputArea .cm-line span"
    editor = person.cell(0).locator(".jp-Cell-inputArea .cm-scroller")
    expect(editor).to_contain_text("And why?")
    await_true(editor, "node => node.scrollWidth <= node.clientWidth")  # its long line goes on in the next
    expect(person.cell(1).locator(colored).filter(has_text=re.compile("^not$"))).to_have_count(1)
    expect(person.cell(0).locator(colored)).to_have_count(0)
    person.edit(0)
    person.keyboard.press("ControlOrMeta+Home")
    person.keyboard.type("# ")
    expect(person.cell(0).locator(colored).filter(has_text=re.compile("^# %%agent$"))).to_have_count(1)


def test_commands_and_options_are_completed(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook("%agent th", "%%agent --mode de"))
    person.page.wait_for_function(COMPLETER_HAS_SETTINGS, arg=PATIENCE)
    for index, (offered, line) in enumerate([("threads", "%agent threads"), ("deny_all", "%%agent --mode deny_all")]):
        person.edit(index)
        expect(person.cell(index).locator(".jp-mod-completer-enabled")).to_have_count(1)  # or Tab would indent
        person.keyboard.press("End")
        person.keyboard.press("Tab")
        expect(person.page.locator(".jp-Completer-item:visible")).to_have_text(re.compile(offered))
        person.keyboard.press("Tab")
        expect(person.cell(index).locator(".jp-Cell-inputArea .cm-line")).to_have_text(line)
        expect(person.page.locator(".jp-Completer:visible")).to_have_count(0)  # then this cell takes the focus again


def test_long_turn_is_in_no_box_of_its_own_in_notebook_7(
    new_person: Callable[[], Person], notebook: Callable[..., str], model: MockModelServer
) -> None:
    person = new_person()
    model.enqueue_tool_call("run_code", {"code": "print('1\\n' * 150)"})
    model.enqueue_tool_call("run_code", {"code": "2"})
    person.open(notebook(ASK), front="notebooks/")
    person.run(0)
    allow_steps(person, "print", "2")


@pytest.mark.parametrize("state", ["thinks", "runs", "waits for a tool"])
def test_interrupt_and_reload_leave_no_sign_of_work_in_any_state(
    person: Person, notebook: Callable[..., str], model: MockModelServer, state: str
) -> None:
    codes = {"runs": "import time\ntime.sleep(600)", "waits for a tool": LIST}
    model.enqueue_tool_call("run_code", {"code": codes.get(state, "1")}, is_held=state == "thinks")
    person.open(notebook(ASK))
    person.run(0)
    if state == "thinks":
        expect(person.cell(0)).to_contain_text("Thinking…")
    else:
        decide(code_card(person), "Allow once")
        expect(person.cell(0).get_by_text("running…", exact=True)).to_be_visible()
    if state == "waits for a tool":
        expect(card(person, "shop.list_orders").get_by_role("button", name="Allow once")).to_be_enabled()
    person.execute("notebook:interrupt-kernel")
    expect(person.cell(0)).to_contain_text("KeyboardInterrupt: the agent's turn was interrupted")
    person.await_kernel()
    at_work = re.compile("Thinking…|running…|waiting for your decision")
    expect(person.cell(0)).not_to_contain_text(at_work)
    expect(person.cell(0).get_by_role("button", name="Allow once")).to_have_count(0)
    person.save()
    person.reload()
    expect(person.cell(0)).to_contain_text("KeyboardInterrupt: the agent's turn was interrupted")
    expect(person.cell(0)).not_to_contain_text(at_work)


@pytest.mark.parametrize("state", ["thinks", "runs"])
def test_reload_while_it_works_lets_it_go_on_and_says_where_the_rest_is(
    person: Person, notebook: Callable[..., str], lab: Lab, model: MockModelServer, state: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)"
    model.enqueue_tool_call("run_code", {"code": wait})
    model.enqueue_message("It is over.", "final_answer", is_held=state == "thinks")
    path = notebook(ASK, "%agent show")
    person.open(path)
    person.run(0)
    decide(code_card(person), "Allow once")
    expect(person.cell(0).get_by_text("running…", exact=True)).to_be_visible()
    if state == "thinks":
        gate.touch()
        expect(person.cell(0)).to_contain_text("Thinking…")
    person.save()
    person.reload()
    if state == "runs":
        expect(person.cell(0).get_by_text("running…", exact=True)).to_be_visible()
    gate.touch()
    model.release()
    person.await_kernel()
    expect(person.cell(0).get_by_text("completed", exact=True)).to_be_visible()
    person.run(1)
    expect(person.cell(1)).to_contain_text("It is over.")


def test_two_pages_of_a_notebook_show_one_turn_and_either_decides(
    person: Person, new_person: Callable[[], Person], notebook: Callable[..., str], model: MockModelServer
) -> None:
    path = notebook(ASK)
    asker, other = person, new_person()
    enqueue_answer(model)
    asker.open(path)
    other.open(path)
    asker.run(0)
    expect(code_card(asker).get_by_role("button", name="Allow once")).to_be_enabled()
    other.open_panel()
    decide(other.item("notebook.run_code"), "Allow once")
    expect(code_card(asker)).to_contain_text("Allowed by")
    expect(other.item("shop.list_orders")).to_be_visible()
    decide(card(asker, "shop.list_orders"), "Allow once")
    expect(other.item("shop.list_orders")).to_have_count(0)
    expect(final_answer(asker)).to_contain_text("There are three.")
    expect(other.page.get_by_text("Thinking…")).to_have_count(0)


def test_outputs_of_an_agents_code_are_those_of_a_cell(
    person: Person, notebook: Callable[..., str], model: MockModelServer
) -> None:
    code = """import asyncio, ipywidgets
from IPython.display import HTML
await asyncio.sleep(0)
display(HTML("<table><tr><td>a table</td></tr></table>"))
display(ipywidgets.IntSlider(description="a slider"))
%time 1
_made = 7"""
    model.enqueue_tool_call("run_code", {"code": code})
    model.enqueue_message("Made.", "final_answer")
    person.open(notebook(ASK, "_made, In[-2:]"))
    person.run(0)
    decide(code_card(person), "Allow once")
    expect(final_answer(person)).to_be_visible()
    outputs = person.cell(0).locator(".jp-OutputArea-output")
    expect(outputs.locator("td")).to_have_text("a table")
    expect(outputs.locator(".widget-slider")).to_contain_text("a slider")
    expect(person.cell(0)).to_contain_text("Wall time")
    person.await_kernel()
    person.run(1)
    expect(person.cell(1).locator(".jp-OutputArea-executeResult")).to_contain_text("(7,")
    expect(person.cell(1).locator(".jp-OutputArea-executeResult")).to_contain_text("find_cell_magic('agent')")


def test_threads_are_renamed_forked_archived_and_read_in_the_panel(
    person: Person, notebook: Callable[..., str], lab: Lab, model: MockModelServer
) -> None:
    model.enqueue_message("Three.", "final_answer")
    path = notebook(ASK)
    person.open(path)
    person.run(0)
    expect(final_answer(person)).to_be_visible()
    person.await_kernel()
    person.save()
    person.open_panel()
    person.show_tab("Agents")
    threads = person.page.get_by_role("region", name="Agent threads")
    ours = threads.get_by_role("listitem").filter(has_text=path[-30:])
    dialog = person.page.get_by_role("dialog")

    def choose(name: str) -> None:
        ours.first.locator("details").evaluate("details => { details.open = true; }")
        ours.first.get_by_role("button", name=name, exact=True).click()

    choose("Rename…")
    dialog.get_by_role("textbox").fill("counting")
    dialog.get_by_role("button", name="Rename").click()
    expect(threads.get_by_role("listitem", name="counting")).to_be_visible()
    choose("What the model was sent")
    expect(dialog).to_contain_text("How many orders are there?")
    expect(dialog).to_contain_text("Three.")
    dialog.get_by_role("button", name="Close").click()
    choose("Fork")
    expect(ours).to_have_count(2)
    choose("Archive")
    expect(ours).to_have_count(1)
    threads.get_by_role("button", name="Show archived threads").click()
    expect(ours).to_have_count(2)
    person.visit()
    person.execute("jupyter-agentbox:open-panel")
    person.await_panel()
    person.show_tab("Agents")
    ours.first.get_by_role("button", name="Go to notebook").click()
    expect(final_answer(person)).to_be_visible()


def test_interrupt_ends_a_turn_that_waits_and_the_next_goes_on(
    person: Person, notebook: Callable[..., str], lab: Lab, model: MockModelServer
) -> None:
    path = notebook(ASK, "%%agent\nGo on.")
    model.enqueue_tool_call("run_code", {"code": "1"})
    person.open(path)
    person.run(0)
    expect(code_card(person).get_by_role("button", name="Allow once")).to_be_enabled()
    person.execute("notebook:interrupt-kernel")
    expect(person.cell(0)).to_contain_text("KeyboardInterrupt: the agent's turn was interrupted")
    expect(code_card(person).get_by_role("button", name="Allow once")).to_have_count(0)
    assert lab.approvals(path) == []
    person.await_kernel()
    model.enqueue_message("I went on.", "final_answer")
    person.run(1)
    expect(final_answer(person, 1)).to_contain_text("I went on.")
    assert model.requests[-1].user_texts() == ["How many orders are there?", "Go on."]


def test_reload_while_it_waits_shows_the_same_and_takes_the_answer(
    person: Person, notebook: Callable[..., str], model: MockModelServer
) -> None:
    enqueue_answer(model)
    person.open(notebook(ASK))
    person.run(0)
    expect(code_card(person).get_by_role("button", name="Allow once")).to_be_enabled()
    person.save()
    person.reload()
    expect(person.cell(0).get_by_role("group", name="Agent", exact=True)).to_contain_text("I look.")
    expect(person.cell(0)).to_contain_text("waiting for your decision")
    decide(code_card(person), "Allow once")
    # Not `open_panel`: the notebook, restored a moment ago, may take the focus back to the cell that was pressed in.
    person.status.click()
    decide(person.item("shop.list_orders"), "Allow once")
    model.wait_for_requests(2, PATIENCE / 1000)
    assert told(model.requests[-1]).endswith("3")


def test_panel_lists_the_thread_and_steers_and_stops_it(
    person: Person, notebook: Callable[..., str], model: MockModelServer
) -> None:
    model.enqueue_tool_call("run_code", {"code": "1"})
    model.enqueue_tool_call("run_code", {"code": "2"})
    path = notebook(ASK)
    person.open(path)
    person.run(0)
    expect(code_card(person)).to_be_visible()
    person.open_panel()
    person.show_tab("Agents")
    threads = person.page.get_by_role("region", name="Agent threads")
    thread = threads.get_by_role("listitem").filter(has_text=path[-30:])
    expect(thread).to_contain_text("waits for you")
    expect(thread).to_contain_text("How many orders are there?")
    thread.get_by_role("textbox").fill("only those of October")
    thread.get_by_role("button", name="Send").click()
    expect(thread.get_by_role("status")).to_have_text("Sent: “only those of October”")
    expect(thread.get_by_role("textbox")).to_have_value("")
    expect(person.cell(0)).to_contain_text("You: only those of October")
    decide(code_card(person), "Allow once")
    model.wait_for_requests(2, PATIENCE / 1000)
    assert model.requests[-1].user_texts() == ["How many orders are there?", "only those of October"]
    expect(thread).to_contain_text("waits for you")
    thread.get_by_role("button", name="Stop").click()
    expect(person.cell(0)).to_contain_text("KeyboardInterrupt: the agent's turn was interrupted")
    expect(thread).to_contain_text("idle")


def test_turn_is_decided_by_keys_alone(person: Person, notebook: Callable[..., str], model: MockModelServer) -> None:
    enqueue_answer(model)
    person.open(notebook(ASK))
    person.run(0)
    for name in ("notebook.run_code", "shop.list_orders"):
        expect(card(person, name)).to_be_visible()
        person.choose_command("Go to Next Approval Request")
        there = person.item(name).get_by_role("group", name=CARD)
        expect(there).to_be_focused()
        allow = there.get_by_role("button", name="Allow once")
        expect(allow).to_be_enabled()
        for _ in range(12):
            if allow.evaluate("node => node === document.activeElement"):
                break
            person.keyboard.press("Tab")
        expect(allow).to_be_focused()
        person.page.evaluate(NEXT_FRAMES)  # the panel may have been scrolled
        expect(allow).to_be_enabled()
        person.keyboard.press("Enter")
    expect(final_answer(person)).to_contain_text("There are three.")


@pytest.mark.parametrize("with_extension", [True, False])
def test_words_of_a_hostile_model_do_nothing_anywhere(
    new_person: Callable[[], Person],
    notebook: Callable[..., str],
    lab: Lab,
    model: MockModelServer,
    tmp_path: Path,
    with_extension: bool,
) -> None:
    person = new_person()
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    model.enqueue_message(HOSTILE, "final_answer")
    path = notebook(ASK)
    if with_extension:
        person.open(path)
    else:
        with lab.without_extension():
            person.open(path)
    person.run(0)
    expect(person.cell(0)).to_contain_text("The end.")
    person.await_kernel()
    person.save()
    outputs = person.cell(0).locator(".jp-OutputArea-output")
    expect(
        outputs.locator("script, img, button:has-text('Allow once'), [onerror], [href^='javascript']")
    ).to_have_count(0)
    expect(person.cell(0).get_by_role("group", name=CARD)).to_have_count(0)
    assert "\x1b" not in str(lab.read_notebook(path)["cells"][0]["outputs"])
    person.page.goto("about:blank")
    html = tmp_path / "page.html"
    html.write_text(exported(lab.root / "work" / path, "html", tmp_path), encoding="utf-8")
    person.page.route("https://**", lambda route: route.abort())  # the template's own scripts
    person.page.goto(html.as_uri())
    expect(person.page.get_by_text("The end.")).to_be_visible()
    assert person.page.evaluate("window.hacked") is None
    assert [url for url in asked if url.startswith(ELSEWHERE)] == []


def allow_steps(person: Person, *expected: str) -> None:
    """Allow one request after the other, each of which says what is expected, and comes into view by itself."""
    for said in expected:
        card = waiting(person).filter(has_text=said)
        allow = card.get_by_role("button", name="Allow once")
        expect(allow).to_be_in_viewport(ratio=1)
        expect(allow).to_be_enabled()
        decide(card, "Allow once")
        expect(card).to_have_count(0)


def waiting(person: Person) -> Locator:
    """The card under the first cell that waits."""
    allow = person.page.get_by_role("button", name="Allow once")
    return person.cell(0).get_by_role("group", name=CARD).filter(has=allow)


def test_each_next_step_of_the_demo_comes_into_view_and_a_refusal_is_answered(
    new_person: Callable[[], Person], lab: Lab, model: MockModelServer, save_picture: Callable[..., None], theme: str
) -> None:
    person = new_person()
    person.page.set_viewport_size({"width": 1280, "height": 940})
    look_at(person, lab, BEST, path="october.ipynb")
    person.run(0)
    allow_steps(person, "orders[0]", "limit500")
    expect(waiting(person)).to_contain_text("ordered_on.month")
    expect(waiting(person).get_by_role("button", name="Allow once")).to_be_enabled()
    person.cell(0).locator(".jp-InputArea").scroll_into_view_if_needed()
    save_picture(f"agent-{theme}", person.cell(0))
    allow_steps(person, "ordered_on.month", "for product_id", "SELECT p.id", "matplotlib")
    picture = person.cell(0).locator(".jp-OutputArea-output img")
    expect(picture).to_be_visible()
    expect(waiting(person).get_by_role("button", name="Allow once")).to_be_in_viewport(ratio=1)
    expect(waiting(person)).to_contain_text("set_price(")
    reject(waiting(person), "not this week")
    expect(final_answer(person)).to_contain_text("the change was refused (“not this week”)")
    expect(final_answer(person)).to_be_in_viewport(ratio=1)
    for message in person.cell(0).locator(".jp-AgentBox-message").all():
        assert_legible(message)
    person.page.set_viewport_size({"width": 1280, "height": 1500})  # or the toolbar lies over the picture's edge
    picture.evaluate("node => node.scrollIntoView({block: 'center'})")
    save_picture(f"agent-answer-{theme}", picture, final_answer(person), margin=4)
    person.open_panel()
    person.show_tab("Agents")
    threads = person.page.get_by_role("region", name="Agent threads")
    expect(threads.get_by_role("listitem").filter(has_text="october.ipynb").first).to_contain_text("idle")
    assert_legible(threads)
