from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.addresses import ADDRESSES, CELL, CELL_SOURCE, listening

from .attack import Attack
from .page import View

ATTACK = Attack("output whose picture, style or video has an address elsewhere, to carry out what the kernel knows")

#: The last of them is one that only the policy of the page stops: when it was stopped, all others were shown.
LAST = "image"
WAYS = {*ADDRESSES, CELL}
KEEP_VIOLATIONS = """
window.stopped = [];
document.addEventListener('securitypolicyviolation', ({blockedURI}) => { window.stopped.push(blockedURI); });
"""


@pytest.mark.browser
def test_no_address_elsewhere_is_asked(view: View) -> None:
    lab, person = view.lab, view.person
    with listening() as listener:
        ways = sorted(ADDRESSES, key=lambda way: way == LAST)
        view.write(*(ADDRESSES[way].replace("URL", listener.address(way)) for way in ways))
        notebook = lab.read_notebook(view.path)
        cell = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": CELL_SOURCE}
        notebook["cells"].insert(0, {**cell, "source": CELL_SOURCE.replace("URL", listener.address(CELL))})
        lab.ask(f"api/contents/{view.path}", {"type": "notebook", "content": notebook}, "PUT")
        person.page.add_init_script(KEEP_VIOLATIONS)

        person.open(view.path)
        person.execute("notebook:run-all-cells")

        if ATTACK.succeeds_at(view.level):
            assert listener.await_all(WAYS, 30) == set()
            return
        expect(person.cell(len(ways)).get_by_role("img")).to_be_attached()
        person.page.wait_for_function("last => window.stopped.includes(last)", arg=listener.address(LAST))
        assert listener.asked == set()
