"""Cards, the panel and outputs of sandboxed kernels in Firefox; the other tests of the page have Chromium."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import pytest

from .firefox import FIREFOX, Firefox, running_firefox
from .lab import Lab
from .outputs import OUTPUTS
from .person import KERNEL_IS_READY
from .test_content_security import FOCUS, RUN_ALL
from .test_sandboxed_outputs import HACKED

ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)[0].status in ('open', 'shipped', 'returned')"
#: How many requests were allowed by the person, and done.
DECIDED = "() => document.querySelector('.jp-Notebook').textContent.split('Allowed by you. Done in').length - 1"

#: The first button of that name in a place, once it takes a press: some time after it came into view.
BUTTON = """() => {
  const button = [...document.querySelectorAll('PLACE button')].find(({textContent}) => textContent === NAME);
  button?.scrollIntoView({block: 'nearest'});
  return button?.ariaDisabled === 'false' && button;
}"""
#: The same, whether it takes a press or not.
FIRST_BUTTON = "[...document.querySelectorAll('.jp-Notebook button')].find(b => b.textContent === 'Allow once')"
#: Lays a thin line over a card's text.
COVER = """() => {
  const {left, top} = document.querySelector('.jp-Notebook .jp-AgentBox-card').getBoundingClientRect();
  const cover = document.createElement('div');
  cover.id = 'cover';
  cover.style = `position: fixed; left: ${left + 20}px; top: ${top + 20}px; width: 300px; height: 4px;`
    + 'pointer-events: none; background: red; z-index: 99999';
  document.body.append(cover);
  return true;
}"""
SAYS_SO = "() => document.querySelector('.jp-Notebook').textContent.includes('Something covers part of this card')"
STATUS = "() => document.querySelector('.jp-AgentBox-status')"
#: The titles of the cards in the cells that have one, after all cells have run; each cell comes into view meanwhile.
BLOCKED = """() => {
  const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
  cells.forEach(cell => cell.scrollIntoView());
  const cards = cells.map(cell => cell.querySelector('.jp-AgentBox-blocked')?.ariaLabel ?? '');
  return cells.at(-1)?.textContent.includes('all done') && cards.filter(Boolean).length >= COUNT && cards.slice(0, -1);
}"""

#: A layout for each page: the server keeps it, and the next page would open what the last one had open.
_WORKSPACES = itertools.count(1)


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    if FIREFOX is None:
        pytest.skip("needs Firefox: Debian's package `firefox-esr`")
    with running_firefox(tmp_path_factory.mktemp("firefox") / "profile") as firefox:
        yield firefox


@pytest.fixture
def firefox(window: Firefox, lab: Lab) -> Iterator[Firefox]:
    yield window
    lab.shut_down_kernels()


def run_all(firefox: Firefox, lab: Lab, path: str) -> None:
    """Open a notebook, and run its cells."""
    firefox.goto(f"{lab.url}lab/workspaces/firefox-{next(_WORKSPACES)}/tree/{path}?token={lab.token}")
    firefox.wait_for_function(FOCUS)
    firefox.wait_for_function(KERNEL_IS_READY)
    firefox.wait_for_function(f"() => {{ void ({RUN_ALL})(); return true; }}")


def button(name: str, place: str = ".jp-Notebook") -> str:
    """Return the function that finds a button which takes a press."""
    return BUTTON.replace("PLACE", place).replace("NAME", json.dumps(name))


def test_card_and_panel_take_a_click_unless_a_thin_line_covers_the_card(
    firefox: Firefox, lab: Lab, notebook: Callable[..., str]
) -> None:
    path = notebook(ASK, ASK)
    run_all(firefox, lab, path)
    firefox.wait_for_function(f"() => ({button('Allow once')})() && ({COVER})()")
    firefox.wait_for_function(SAYS_SO)
    firefox.click(f"() => {FIRST_BUTTON}")
    assert {approval["status"] for approval in lab.approvals(path)} == {"pending"}
    firefox.wait_for_function("() => { document.getElementById('cover').remove(); return true; }")
    firefox.click(button("Allow once"))
    firefox.wait_for_function(DECIDED)
    firefox.click(STATUS)
    firefox.click(button("Allow once", ".jp-AgentBox-panel"))
    firefox.wait_for_function(f"() => ({DECIDED})() === 2")


@pytest.mark.parametrize("kernel", ["plain", "sandboxed"])
def test_outputs_run_if_their_kernel_is_plain_or_a_person_allows_them(
    firefox: Firefox, lab: Lab, notebook: Callable[..., str], boxed: str, kernel: str
) -> None:
    sources = [output.source(name) for name, output in OUTPUTS.items()]
    path = notebook(*sources, "print('all', 'done')", kernel=boxed if kernel == "sandboxed" else "python3")
    run_all(firefox, lab, path)
    kinds = [output.kind for output in OUTPUTS.values()] if kernel == "sandboxed" else [""] * len(OUTPUTS)
    cards = firefox.wait_for_function(BLOCKED.replace("COUNT", str(len([*filter(None, kinds)]))))
    if kernel == "plain":
        firefox.wait_for_function(f"() => {HACKED}.length >= {len(OUTPUTS)}")
        assert not any(cards)
        return
    for card, kind in zip(cards, kinds, strict=True):
        assert card == f"Blocked output: {kind}" or not kind
    assert firefox.wait_for_function(f"() => [{HACKED}]") == [[]]
    firefox.click(button("Run this output"))
    assert firefox.wait_for_function(f"() => {HACKED}.length && {HACKED}") == ["javascript"]
