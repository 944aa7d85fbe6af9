"""Several people in one notebook at the same time, with jupyter-collaboration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from jupyter_agentbox.core.isolation import Isolation

from .lab import Lab, running_lab
from .outputs import OUTPUTS
from .person import Person, decide
from .test_sandboxed_outputs import HACKED, allow, blocked

#: A Python with jupyter-collaboration; `make test-versions` makes it.
PYTHON = os.environ.get("AGENTBOX_TEST_COLLABORATION")

ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)[0].status in ('open', 'shipped', 'returned')"
PRICE = "from jupyter_agentbox import tools\ntools.shop.set_price(product_id=5, price=149.0).price"
LOOP = "from jupyter_agentbox import tools\nfor id in (1, 2):\n    tools.shop.restock(product_id=id, quantity=2)"
SCRIPT = OUTPUTS["javascript"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if PYTHON is None:
        pytest.skip("`make test-versions` installs jupyter-collaboration, which takes half a minute")
    root = tmp_path_factory.mktemp("shared")
    with running_lab(root, f"--SQLiteYStore.db_path={root}/ystore.db", python=PYTHON) as lab:
        yield lab


@pytest.fixture
def join(shared: Lab, new_context: Callable[[], BrowserContext]) -> Iterator[Callable[[str], Person]]:
    """Bring someone into a notebook, in a browser of their own."""

    def join(path: str) -> Person:
        person = Person(new_context().new_page(), shared)
        person.open(path)
        return person

    yield join
    shared.shut_down_kernels()


def waiting(person: Person, argument: str) -> Locator:
    """Return the card of a call that waits."""
    cards = person.cell(0).locator(".jp-AgentBox-card[data-status='pending']")
    return cards.filter(has_text=argument)


def user_of(person: Person) -> str:
    """Return the name under which the others see someone."""
    name: str = person.page.evaluate("window.jupyterapp.serviceManager.user.identity.display_name")
    return name


def test_everybody_sees_one_card_and_who_decided_also_who_comes_later(
    shared: Lab, join: Callable[[str], Person]
) -> None:
    shared.write_notebook("card.ipynb", ASK)
    runs, decides = join("card.ipynb"), join("card.ipynb")
    runs.run(0)
    expect(runs.card()).to_contain_text("shop.list_orders")
    decide(decides.card(), "Allow once")
    expect(decides.card()).to_contain_text("Allowed by you. Done in")
    who = user_of(decides)
    expect(runs.card()).to_contain_text(f"Allowed by {who}. Done in")
    for person in (runs, decides):
        expect(person.cell(0)).to_contain_text("True")
        expect(person.cell(0).locator(".jp-AgentBox-card")).to_have_count(1)
    runs.save()
    expect(join("card.ipynb").card()).to_contain_text(f"Allowed by {who}. Done in")
    (saved, _) = shared.read_notebook("card.ipynb")["cells"][0]["outputs"]
    assert f"allowed by {who}" in saved["data"]["text/plain"]


def test_each_of_a_loops_calls_is_decided_by_whoever_is_first(shared: Lab, join: Callable[[str], Person]) -> None:
    shared.write_notebook("loop.ipynb", LOOP)
    one, other = join("loop.ipynb"), join("loop.ipynb")
    one.run(0)
    decide(waiting(one, "product_id1"), "Allow once")
    for _ in ("open the form", "send it"):
        decide(waiting(other, "product_id2"), "Reject")
    expect(one.cell(0)).to_contain_text(f"Rejected by {user_of(other)}")
    expect(other.cell(0)).to_contain_text(f"Allowed by {user_of(one)}")
    expect(other.cell(0)).to_contain_text("Rejected by you")
    expect(other.cell(0)).to_contain_text("ToolCallRejectedError")


def test_code_is_updated_for_all_after_an_edit(shared: Lab, join: Callable[[str], Person]) -> None:
    shared.write_notebook("edit.ipynb", PRICE)
    runs, edits = join("edit.ipynb"), join("edit.ipynb")
    runs.run(0)
    card = edits.card()
    decide(card, "Edit")
    card.get_by_role("textbox", name="price").fill("14.9")
    decide(card, "Allow once with edits")
    for person in (runs, edits):
        expect(person.cell(0).locator(".jp-OutputArea-executeResult")).to_contain_text("14.9")
        expect(person.card()).to_contain_text("Done in")
    runs.card().get_by_text("Allowed with edited arguments").click()
    runs.card().get_by_role("button", name="Update the cell’s code…").click()
    runs.card().get_by_role("button", name="Update the code").click()
    expect(edits.cell(0).locator(".jp-Cell-inputArea .cm-content")).to_contain_text("price=14.9")


def test_outputs_of_a_sandboxed_kernel_run_in_nobodys_page_until_that_person_allows_it(
    shared: Lab, join: Callable[[str], Person], level: Isolation
) -> None:
    shared.install_kernel("boxed", level)
    shared.write_notebook("guard.ipynb", SCRIPT.source("first"), kernel="boxed")
    runs, reads = join("guard.ipynb"), join("guard.ipynb")
    runs.run(0)
    for person in (runs, reads):
        expect(blocked(person.cell(0))).to_be_visible()
    allow(runs, blocked(runs.cell(0)))
    runs.page.wait_for_function(f"{HACKED}.length === 1")
    assert reads.page.evaluate(HACKED) == []
    expect(blocked(reads.cell(0))).to_be_visible()
