"""A page that was loaded before its server had a sandboxed kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from jupyter_agentbox.core.isolation import Isolation

from .addresses import ADDRESSES, Listener, listening
from .lab import Lab, running_lab
from .outputs import OUTPUTS
from .person import Person
from .test_sandboxed_outputs import HACKED, blocked

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
    person.open(path)
    person.run(0)
    person.page.wait_for_function(f"{HACKED}.length === 1")

    lab.install_kernel("boxed", level)
    person.page.evaluate(CHANGE_KERNEL, "boxed")
    person.await_kernel()
    person.run(1, 2, 3)

    expect(blocked(person.cell(1))).to_be_visible()
    expect(blocked(person.cell(2))).to_be_visible()
    person.page.wait_for_function(f"window.stopped.includes({json.dumps(listener.address('image'))})")
    assert person.page.evaluate(HACKED) == ["plain"]
    assert listener.asked == set()
