"""A page that a person looks at while a kernel attacks it, for attacks that take the way through an output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect, sync_playwright

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import reach
from tests.browser.conftest import CHROMIUM, CHROMIUM_OPTIONS
from tests.browser.lab import Lab, running_lab
from tests.browser.outputs import ASK
from tests.browser.person import Person

from .attack import Attack

NOTEBOOK = "attack.ipynb"


@contextmanager
def looking(root: Path) -> Iterator[tuple[Lab, Person]]:
    """Start JupyterLab, and a person who looks at it."""
    with running_lab(root) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        try:
            yield lab, Person(browser.new_page(), lab)
            lab.shut_down_kernels()
        finally:
            browser.close()


def skip_unless_reached(level: Isolation) -> None:
    """Skip the test if this machine cannot reach a level, and say why."""
    if level is not Isolation.NONE:
        try:
            reach([level])
        except SandboxRefusedError as refusal:
            pytest.skip(str(refusal))


@contextmanager
def page_with_kernel(level: Isolation, root: Path) -> Iterator[tuple[Lab, Person, str]]:
    """A page that a person looks at, and the name of a kernel at a level; skips where that level cannot be reached."""
    skip_unless_reached(level)
    with looking(root) as (lab, person):
        kernel = "python3" if level is Isolation.NONE else "boxed"
        if level is not Isolation.NONE:
            lab.install_kernel(kernel, level)
        yield lab, person, kernel


def move_to(person: Person, button: Locator) -> None:
    """Move the pointer to where a button is, whatever lies over it."""
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box
    person.page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    person.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def click_into(person: Person, button: Locator) -> None:
    """Click where a button is, whatever lies over it, as someone does who believes to press what they see there."""
    move_to(person, button)
    person.page.mouse.down()
    person.page.mouse.up()


def expect_decision(attack: Attack, code: str, level: Isolation, root: Path, *, does_run: bool = False) -> None:
    """Run code that shows an output which decides, ask for a call, and compare what came of it with the table.

    An attack that fails although its output runs says so in `window.clicks`.
    """
    with page_with_kernel(level, root) as (lab, person, kernel):
        lab.write_notebook(NOTEBOOK, code, ASK, kernel=kernel)
        person.open(NOTEBOOK)
        person.run(0, 1)
        if attack.succeeds_at(level):
            expect(person.card(1)).to_contain_text("Done in")
            assert lab.approvals(NOTEBOOK, "approved")
            return
        if does_run:
            person.page.wait_for_function("window.clicks > 40")
        else:
            expect(person.cell(0).get_by_role("group", name="Blocked output")).to_be_visible()
        # Whatever ran would have answered before a person could.
        expect(person.card(1).get_by_role("button", name="Allow once")).to_have_attribute("aria-disabled", "false")
        (request,) = lab.approvals(NOTEBOOK)
        assert request["status"] == "pending"
