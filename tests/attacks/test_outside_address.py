from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from jupyter_agentbox.core.isolation import Isolation
from tests.browser.addresses import ADDRESSES, CELL, CELL_SOURCE, listening

from .attack import LEVELS, Attack
from .page import NOTEBOOK, looking, skip_unless_reached

ATTACK = Attack("output whose picture, style or video has an address elsewhere, to carry out what the kernel knows")

#: The last of them is one that only the policy of the page stops: when it was stopped, all others were shown.
LAST = "image"
WAYS = {*ADDRESSES, CELL}
KEEP_VIOLATIONS = """
window.stopped = [];
document.addEventListener('securitypolicyviolation', ({blockedURI}) => { window.stopped.push(blockedURI); });
"""


@pytest.mark.browser
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
def test_no_address_elsewhere_is_asked(level: Isolation, tmp_path: Path) -> None:
    skip_unless_reached(level)
    with looking(tmp_path) as (lab, person), listening() as listener:
        kernel = "python3" if level is Isolation.NONE else "boxed"
        if level is not Isolation.NONE:
            lab.install_kernel(kernel, level)
        ways = sorted(ADDRESSES, key=lambda way: way == LAST)
        sources = [ADDRESSES[way].replace("URL", listener.address(way)) for way in ways]
        lab.write_notebook(NOTEBOOK, *sources, kernel=kernel)
        notebook = lab.read_notebook(NOTEBOOK)
        cell = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": CELL_SOURCE}
        notebook["cells"].insert(0, {**cell, "source": CELL_SOURCE.replace("URL", listener.address(CELL))})
        lab.ask(f"api/contents/{NOTEBOOK}", {"type": "notebook", "content": notebook}, "PUT")
        person.page.add_init_script(KEEP_VIOLATIONS)

        person.open(NOTEBOOK)
        person.execute("notebook:run-all-cells")

        if ATTACK.succeeds_at(level):
            assert listener.await_all(WAYS, 30) == set()
            return
        expect(person.cell(len(ways)).get_by_role("img")).to_be_attached()
        person.page.wait_for_function("last => window.stopped.includes(last)", arg=listener.address(LAST))
        assert listener.asked == set()
