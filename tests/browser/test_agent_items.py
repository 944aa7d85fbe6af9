"""What an agent says and runs, as a page shows it: the items that its kernel put out, whatever they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from .person import Person

ELSEWHERE = "http://elsewhere.invalid"
PICTURE = f"![a picture]({ELSEWHERE}/picture.png)"
HACK = "(window.hacked ||= []).push(1)"

#: Each would load or run something, in Markdown of a cell or of an agent.
HOSTILE = f"""\
{PICTURE} <img src="{ELSEWHERE}/tag.png" onerror="{HACK}"> [link](javascript:{HACK})
<script>{HACK}</script> <p style="background: url({ELSEWHERE}/style.png)">styled</p>

$\\style{{background: url({ELSEWHERE}/formula.png)}}{{x}}$ and $x^2$

```mermaid
flowchart LR
A@{{ img: "{ELSEWHERE}/diagram.png", label: "in a diagram" }}
```
"""


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def show(*items: Mapping[str, Any], is_complete: bool = True) -> str:
    """Return the source of a cell that puts out items as the kernel side does."""
    outputs = [
        {
            "application/vnd.jupyter-agentbox.item+json": {
                "thread_id": "h1",
                "turn_id": "t1",
                "item": item,
                "is_complete": is_complete,
            },
            "text/plain": "fallback",
        }
        for item in items
    ]
    return (
        f"import json\nfor data in json.loads({json.dumps(outputs)!r}): display(data, raw=True)\nprint('all', 'done')"
    )


def message(text: str, phase: str | None = "final_answer") -> dict[str, Any]:
    """Return words of an agent."""
    return {"type": "agent_message", "id": "m1", "text": text, "phase": phase}


def code_run(code: str) -> dict[str, Any]:
    """Return code that ran."""
    return {"type": "code_run", "id": "c1", "code": code, "status": "completed", "request_id": None, "error": ""}


def items_of(person: Person, index: int = 0) -> Locator:
    """The items under a cell."""
    return person.cell(index).locator(".jp-AgentBox-turnItem")


@pytest.mark.parametrize("kernel", ["python3", "boxed"])
def test_words_of_an_agent_load_and_run_nothing(
    person: Person, notebook: Callable[..., str], kernel: str, boxed: str
) -> None:
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    person.open(notebook(show(message(HOSTILE)), kernel=boxed if kernel == "boxed" else kernel))
    person.run(0)
    expect(person.cell(0)).to_contain_text("all done")
    answer = items_of(person).get_by_role("group", name="Answer")
    expect(answer).to_contain_text("in a diagram")
    expect(answer.locator("mjx-container")).to_have_count(0)
    link = answer.get_by_role("link", name="a picture")
    expect(link).to_have_attribute("href", f"{ELSEWHERE}/picture.png")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(answer.locator("img, [style], [src], script")).to_have_count(0)
    assert person.page.evaluate("window.hacked") is None
    assert [url for url in asked if url.startswith(ELSEWHERE)] == []


def test_items_read_like_a_part_of_the_notebook(person: Person, notebook: Callable[..., str], boxed: str) -> None:
    items = [
        {"type": "reasoning", "id": "r1", "text": "A thought."},
        message("Some *words*.", "commentary"),
        code_run("for x in y:\n    print('Allowed by Ada.')"),
        {"type": "notice", "id": "n1", "code": "limit", "text": "A notice."},
        message("The **answer**.\n\n```python\nx = 1\n```\n\n$x^2$"),
    ]
    person.open(notebook(show(*items), kernel=boxed))
    person.run(0)
    expect(person.cell(0)).to_contain_text("all done")
    reasoning, words, code, notice, answer = (items_of(person).nth(index) for index in range(5))
    expect(reasoning.get_by_text("A thought.")).to_be_hidden()
    expect(words.get_by_role("group", name="Agent").locator("em")).to_have_text("words")
    expect(code.locator(".cm-line")).to_have_text(["for x in y:", "    print('Allowed by Ada.')"])
    expect(code.get_by_role("status")).to_have_text("completed")
    expect(notice).to_have_text("A notice.")
    expect(answer.locator("strong")).to_have_text("answer")
    expect(answer.locator("code.language-python span").first).to_be_visible()
    expect(person.notebook.get_by_role("group", name="Blocked output")).to_have_count(0)


def test_a_cell_with_a_turn_shows_the_outputs_of_all_its_steps(person: Person, notebook: Callable[..., str]) -> None:
    more = "for n in range(60): display(f'output {n}')"
    path = notebook(f"{show(message('Words.', 'commentary'))}\n{more}", more)
    person.open(path)
    for index in range(2):
        person.run(index)
    hidden = person.page.get_by_role("button", name="Show more outputs")
    expect(person.cell(1)).to_contain_text("output 49")
    expect(hidden).to_have_count(1)  # of the cell without a turn
    expect(person.cell(0)).to_contain_text("output 59")
    person.save()
    person.open(path)
    expect(person.cell(0)).to_contain_text("output 59")
    expect(hidden).to_have_count(1)


def test_words_that_come_replace_no_paragraph_that_is_there(person: Person, notebook: Callable[..., str]) -> None:
    source = (
        "m = 'application/vnd.jupyter-agentbox.item+json'\n"
        "def data(text):\n"
        "    item = {'type': 'agent_message', 'id': 'm1', 'text': text, 'phase': None}\n"
        "    return {m: {'thread_id': 'h1', 'turn_id': 't1', 'item': item, 'is_complete': False}}\n"
        "shown = display(data('The first.\\n\\nThe'), raw=True, display_id=True)"
    )
    person.open(notebook(source, "shown.update(data('The first.\\n\\nThe second.'), raw=True)"))
    person.run(0)
    first = items_of(person).locator("p").first
    expect(first).to_have_text("The first.")
    first.evaluate("node => { node.isOurs = true; }")
    person.run(1)
    expect(items_of(person).locator("p")).to_have_text(["The first.", "The second."])
    assert first.evaluate("node => node.isOurs") is True


def test_code_that_ran_is_inserted_as_cells_and_taken_out_again(person: Person, notebook: Callable[..., str]) -> None:
    turn = {"id": "t1", "thread_id": "h1", "status": "completed", "items": [code_run("a = 1"), code_run("b = 2")]}
    person.page.route("**/jupyter-agentbox/turns/t1*", lambda route: route.fulfill(json=turn))
    path = notebook(show(message("Done.")), "'after'")
    ran_in = {"notebook_path": "other.ipynb"}
    person.page.route("**/jupyter-agentbox/threads/h1*", lambda route: route.fulfill(json=ran_in))
    person.open(path)
    person.run(0)
    button = items_of(person).get_by_role("button", name="Insert as cells")
    button.focus()
    person.keyboard.press("Enter")
    dialog = person.page.get_by_role("dialog")
    expect(dialog).to_contain_text("This code ran in another notebook: other.ipynb")
    dialog.get_by_role("button", name="Insert").click()
    inputs = person.notebook.locator(".jp-Cell-inputArea .cm-content")
    expect(inputs).to_have_count(4)
    expect(inputs.nth(1)).to_have_text("a = 1")
    expect(inputs.nth(2)).to_have_text("b = 2")
    person.execute("notebook:undo-cell-action")
    expect(inputs).to_have_count(2)
    ran_in["notebook_path"] = path
    person.notebook.locator(".jp-Cell").first.click()
    person.choose_command("Insert the Agent’s Code as Cells")
    expect(inputs).to_have_count(4)
