"""Pages that a person looks at while a kernel attacks them, for attacks that take the way through an output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, expect, sync_playwright

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import select_level
from tests.browser.conftest import CHROMIUM, CHROMIUM_OPTIONS
from tests.browser.lab import Lab, running_lab
from tests.browser.outputs import ASK
from tests.browser.person import Person

from .attack import LEVELS, Attack

#: A notebook for each page, or requests of the last one would be found.
_NOTEBOOKS = itertools.count(1)


@dataclass(frozen=True)
class View:
    """A page that a person looks at.

    Parameters
    ----------
    lab : Lab
        Where it comes from.
    person : Person
        Who looks.
    level : Isolation
        The level of the kernel of its notebook.
    path : str
        Its notebook, which is not written yet.
    """

    lab: Lab
    person: Person
    level: Isolation
    path: str

    def open(self, *sources: str) -> None:
        """Write the notebook, with a kernel at the level, and open it."""
        self.write(*sources)
        self.person.open(self.path)

    def write(self, *sources: str) -> None:
        """Write the notebook, with a kernel at the level."""
        kernel = "python3" if self.level is Isolation.NONE else self.level.value
        self.lab.write_notebook(self.path, *sources, kernel=kernel)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A chromium; for one file, because no other loop can run beside Playwright's."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def plain_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab that can start no sandboxed kernel, and so holds its pages to no policy."""
    with running_lab(tmp_path_factory.mktemp("plain")) as lab:
        yield lab


@pytest.fixture(scope="package")
def sandbox_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab that can start kernels at every level that this machine can reach."""
    with running_lab(tmp_path_factory.mktemp("sandbox")) as lab:
        yield lab


@contextmanager
def looking(lab: Lab, browser: Browser, level: Isolation) -> Iterator[View]:
    """Bring a person; afterwards no kernel runs and nothing waits."""
    page = browser.new_page()
    try:
        yield View(lab, Person(page, lab), level, f"attack-{next(_NOTEBOOKS)}.ipynb")
    finally:
        page.close()
        lab.shut_down_kernels()


@pytest.fixture
def plain_view(plain_lab: Lab, browser: Browser) -> Iterator[View]:
    """A page with a plain kernel, for tests that show that an attack would be seen if it succeeded."""
    with looking(plain_lab, browser, Isolation.NONE) as view:
        yield view


@pytest.fixture(params=LEVELS, ids=lambda level: level.value)
def view(request: pytest.FixtureRequest, browser: Browser) -> Iterator[View]:
    """A page with a kernel at each level that this machine can reach."""
    level: Isolation = request.param
    if level is Isolation.NONE:
        yield request.getfixturevalue("plain_view")
        return
    try:
        select_level([level])
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))
    lab: Lab = request.getfixturevalue("sandbox_lab")
    lab.install_kernel(level.value, level)
    with looking(lab, browser, level) as view:
        yield view


def move_to(person: Person, button: Locator) -> None:
    """Move the pointer to where a button is, whatever lies over it."""
    button.hover(force=True)  # it finds the button again if a card is rendered once more


def click_into(person: Person, button: Locator) -> None:
    """Click where a button is, whatever lies over it, as someone does who believes to press what they see there."""
    move_to(person, button)
    person.page.mouse.down()
    person.page.mouse.up()


def expect_decision(attack: Attack, code: str, view: View, *, does_run: bool = False) -> None:
    """Run code that shows an output which decides, ask for a call, and compare what came of it with the table.

    An attack that fails although its output runs says so in `window.clicks`.
    """
    lab, person = view.lab, view.person
    view.open(code, ASK)
    person.run(0, 1)
    if attack.succeeds_at(view.level):
        expect(person.card(1)).to_contain_text("Done in")
        assert lab.approvals(view.path, "approved")
        return
    if does_run:
        person.page.wait_for_function("window.clicks > 40")
    else:
        expect(person.cell(0).get_by_role("group", name="Blocked output")).to_be_visible()
    # Whatever ran would have answered before a person could.
    expect(person.card(1).get_by_role("button", name="Allow once")).to_have_attribute("aria-disabled", "false")
    (request,) = lab.approvals(view.path)
    assert request["status"] == "pending"
