"""The oldest JupyterLab and Notebook that are supported; the other tests of the page have the newest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from jupyter_agentbox.core.isolation import Isolation

from .lab import Lab, running_lab
from .outputs import OUTPUTS
from .person import Person, decide
from .test_agent_items import ELSEWHERE, HOSTILE, code_run, items_of, message, show
from .test_sandboxed_outputs import HACKED, allow, blocked

#: A Python with the oldest JupyterLab and Notebook that are supported; `make test-versions` makes it.
OLDEST = os.environ.get("AGENTBOX_TEST_OLDEST_LAB")

ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)[0].status in ('open', 'shipped', 'returned')"
SCRIPT = OUTPUTS["javascript"]


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if OLDEST is None:
        pytest.skip("`make test-versions` installs the oldest JupyterLab, which takes a minute")
    with running_lab(tmp_path_factory.mktemp("oldest"), python=OLDEST) as lab:
        yield lab


@pytest.fixture
def visitor(oldest: Lab, new_context: Callable[[], BrowserContext]) -> Iterator[Person]:
    yield Person(new_context().new_page(), oldest)
    oldest.shut_down_kernels()


@pytest.mark.parametrize("front", ["lab/workspaces/{}/tree/", "notebooks/"])
def test_oldest_front_ends_show_the_card(visitor: Person, oldest: Lab, front: str) -> None:
    path = f"card-{front[0]}.ipynb"
    oldest.write_notebook(path, ASK)
    visitor.open(path, front=front)
    visitor.run(0)
    decide(visitor.card(), "Allow once")
    expect(visitor.card()).to_contain_text("Allowed by you. Done in")
    expect(visitor.cell(0)).to_contain_text("True")


@pytest.mark.parametrize("front", ["lab/workspaces/{}/tree/", "notebooks/"])
def test_oldest_front_ends_show_what_an_agent_says_and_runs(visitor: Person, oldest: Lab, front: str) -> None:
    path = f"items-{front[0]}.ipynb"
    oldest.write_notebook(path, show(code_run("a = 1\nprint(a)"), message(HOSTILE)))
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    visitor.open(path, front=front)
    visitor.run(0)
    expect(items_of(visitor).locator(".cm-line")).to_have_text(["a = 1", "print(a)"])
    expect(items_of(visitor).get_by_role("link", name="a picture")).to_be_visible()
    expect(items_of(visitor).get_by_role("group", name="Answer")).to_contain_text("in a diagram")
    assert [url for url in asked if url.startswith(ELSEWHERE)] == []


def test_oldest_lab_shows_requests_in_the_panel_and_leads_to_their_cells(visitor: Person, oldest: Lab) -> None:
    oldest.write_notebook("panel.ipynb", ASK, "print('mine')")
    visitor.open("panel.ipynb")
    visitor.open_panel()
    visitor.run(0)
    item = visitor.item("shop.list_orders")
    visitor.edit(1)
    decide(item, "Go to cell")
    expect(visitor.card()).to_be_focused()
    decide(item, "Allow once")
    expect(visitor.card()).to_contain_text("Done in")
    expect(item).to_have_count(0)


@pytest.mark.parametrize("front", ["lab/workspaces/{}/tree/", "notebooks/"])
def test_oldest_front_ends_run_no_output_of_a_sandboxed_kernel(
    visitor: Person, oldest: Lab, level: Isolation, front: str
) -> None:
    oldest.install_kernel("boxed", level)
    path = f"guard-{front[0]}.ipynb"
    oldest.write_notebook(path, SCRIPT.source("first"), SCRIPT.source("second"), kernel="boxed")
    visitor.open(path, front=front)
    visitor.run(0, 1)
    for index in range(2):
        expect(blocked(visitor.cell(index))).to_be_visible()
    allow(visitor, blocked(visitor.cell(1)))
    visitor.page.wait_for_function(f"{HACKED}.length === 1")
    assert visitor.page.evaluate(HACKED) == ["second"]
