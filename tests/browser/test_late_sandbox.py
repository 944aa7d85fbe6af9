"""A page that was loaded before its server had a sandboxed kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Route, expect

from jupyter_agentbox.core.isolation import Isolation

from .addresses import ADDRESSES, Listener, listening
from .lab import Lab, running_lab
from .outputs import OUTPUTS
from .person import Person
from .test_sandboxed_outputs import HACKED, blocked

#: The file of the lab extension that guards outputs.
GUARD = re.compile("outputs-guard")
HAS_RUN = "n => window.jupyterapp.shell.currentWidget.content.widgets[n].model.executionCount !== null"
KEEP_VIOLATIONS = """
window.stopped = [];
document.addEventListener('securitypolicyviolation', ({blockedURI}) => { window.stopped.push(blockedURI); });
"""
CHANGE_KERNEL = """async name => {
  await window.jupyterapp.serviceManager.kernelspecs.refreshSpecs();
  await window.jupyterapp.shell.currentWidget.sessionContext.changeKernel({name});
}"""


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("late")) as lab:
        yield lab


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


def test_the_first_sandboxed_kernel_is_guarded_in_a_page_that_is_older(
    person: Person, notebook: Callable[..., str], lab: Lab, level: Isolation, listener: Listener
) -> None:
    image = ADDRESSES["image"].replace("URL", listener.address("image"))
    script = OUTPUTS["javascript"].source("sandboxed")
    path = notebook(OUTPUTS["javascript"].source("plain"), script, OUTPUTS["html-widget"].source("widget"), image)
    person.page.add_init_script(KEEP_VIOLATIONS)
    guards: list[str] = []
    person.page.on("request", lambda request: guards.extend(GUARD.findall(request.url)))
    person.open(path)
    person.run(0)
    person.page.wait_for_function(f"{HACKED}.length === 1")
    assert guards == []

    lab.install_kernel("boxed", level)
    person.page.evaluate(CHANGE_KERNEL, "boxed")
    person.await_kernel()
    person.run(1, 2, 3)

    expect(blocked(person.cell(1))).to_be_visible()
    expect(blocked(person.cell(2))).to_be_visible()
    person.page.wait_for_function(f"window.stopped.includes({json.dumps(listener.address('image'))})")
    assert person.page.evaluate(HACKED) == ["plain"]
    assert listener.asked == set()
    assert guards == ["outputs-guard"]


def test_no_output_is_shown_before_its_guard_is_loaded(
    person: Person, notebook: Callable[..., str], lab: Lab, level: Isolation
) -> None:
    path = notebook(OUTPUTS["javascript"].source("sandboxed"), "print('shown')")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    person.page.route(GUARD, hold)
    person.open(path)
    lab.install_kernel("boxed", level)
    person.page.evaluate(CHANGE_KERNEL, "boxed")
    person.await_kernel()
    person.run(0, 1)
    person.page.wait_for_function(HAS_RUN, arg=1)
    expect(person.page.get_by_text("shown", exact=True)).to_have_count(0)

    held[0].continue_()
    expect(blocked(person.cell(0))).to_be_visible()
    expect(person.page.get_by_text("shown", exact=True)).to_be_visible()
    assert person.page.evaluate(HACKED) == []


def test_jupyterlab_appears_without_the_guard_and_shows_outputs_when_that_is_loaded(
    person: Person, notebook: Callable[..., str], lab: Lab, level: Isolation
) -> None:
    lab.install_kernel("boxed", level)
    person.page.route(GUARD, lambda route: route.abort())
    path = notebook("print('shown')")
    person.page.goto(f"{lab.url}lab/tree/{path}?token={lab.token}")
    dialog = person.page.get_by_role("dialog")
    expect(dialog).to_contain_text("no outputs are shown")
    expect(person.notebook).to_be_visible(timeout=30_000)
    dialog.get_by_role("button", name="Close").click()
    person.cell(0).click()
    person.await_kernel()
    person.run(0)
    person.page.wait_for_function(HAS_RUN, arg=0)
    expect(person.page.get_by_text("shown", exact=True)).to_have_count(0)

    person.page.unroute(GUARD)
    # It is tried again after a while.
    expect(person.page.get_by_text("shown", exact=True)).to_be_visible(timeout=60_000)
