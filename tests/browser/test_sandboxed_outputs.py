"""What outputs of a sandboxed kernel may do in the page, and what those of a plain one do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.probes import reach
from jupyter_agentbox.sandbox.settings import SANDBOX_LEVELS

from .lab import Lab
from .outputs import ANYWIDGET, OUTPUTS, Output
from .person import Person, decide

BOXED = "boxed"
HACKED = "[...new Set(window.hacked ?? [])].sort()"
BLOCKED = re.compile("^Blocked output: ")


@pytest.fixture
def boxed(lab: Lab) -> str:
    """The name of a kernel that is sandboxed at the best level that this machine can reach."""
    try:
        level = reach(SANDBOX_LEVELS)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))
    lab.install_kernel(BOXED, level)
    return BOXED


def blocked(place: Locator) -> Locator:
    """The cards of the outputs that did not run."""
    return place.get_by_role("group", name=BLOCKED)


def run_all(person: Person, count: int) -> None:
    """Run all cells, and wait until the last has."""
    person.execute("notebook:run-all-cells")
    expect(person.cell(count - 1)).to_contain_text("all done")


def test_outputs_of_a_plain_kernel_run(person: Person, notebook: Callable[..., str]) -> None:
    sources = [output.source(name) for name, output in OUTPUTS.items()]
    person.open(notebook(*sources, "print('all', 'done')"))
    run_all(person, len(sources) + 1)
    for index in range(len(sources)):
        person.cell(index).scroll_into_view_if_needed()
    expected = sorted(OUTPUTS)
    try:
        person.page.wait_for_function(f"count => {HACKED}.length >= count", arg=len(expected))
    finally:
        assert person.page.evaluate(HACKED) == expected
    assert blocked(person.notebook).count() == 0


def test_no_output_of_a_sandboxed_kernel_runs_and_each_has_its_card(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    sources = [output.source(name) for name, output in OUTPUTS.items()]
    person.open(notebook(*sources, "print('all', 'done')", kernel=boxed))
    run_all(person, len(sources) + 1)
    for index, output in enumerate(OUTPUTS.values()):
        person.cell(index).scroll_into_view_if_needed()
        if output.kind:
            expect(person.cell(index).get_by_role("group", name=f"Blocked output: {output.kind}")).to_be_visible()
    assert person.page.evaluate(HACKED) == []
