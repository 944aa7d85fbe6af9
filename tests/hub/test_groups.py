"""Rules of a site for groups of a real JupyterHub, in the server of a user."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .hub import API, OWNER, TIMEOUT, Hub, run

RULES = [
    {"effect": "deny", "server": "lab", "tool": "*", "groups": ["students"], "reason": "ask Ada"},
    {"effect": "allow", "server": "lab", "tool": "*", "groups": ["teachers"]},
    {"effect": "allow", "server": "library", "tool": "*", "groups": ["guests", "students"]},
]


@pytest.fixture
def evaluate(hub: Hub) -> Iterator[Callable[[str], Any]]:
    """Make the owner a student, with rules for groups, and return what says what becomes of calls."""
    if os.geteuid() != 0:
        pytest.skip("a site's file has to belong to another user than the server's: the tests run as root for that")
    for group in ("students", "teachers"):
        hub.api(f"groups/{group}", {})
    hub.api("groups/students/users", {"users": [OWNER]})
    file = hub.root / "site" / "agentbox_rules.json"
    file.write_text(json.dumps({"rules": RULES}))
    token = hub.token_of(OWNER)

    def evaluate(server: str) -> Any:
        return hub.ask(f"{hub.server()}{API}policy/evaluate", {"server": server, "tool": "t"}, token=token)[1]

    yield evaluate
    file.unlink()
    for group in ("students", "teachers"):
        hub.api(f"groups/{group}", method="DELETE")


def test_a_rule_holds_for_members_as_the_hub_says_and_before_it_says_the_strict_ones_hold(
    hub: Hub, evaluate: Callable[[str], Any]
) -> None:
    end = time.monotonic() + TIMEOUT
    while True:
        library, found = evaluate("library"), evaluate("lab")
        if "not known" not in found["reason"]:
            break
        # Nor was it when the first of the two was evaluated.
        assert (library["effect"], found["effect"]) == ("ask", "deny")
        assert time.monotonic() < end, "the server never asked the Hub"
        time.sleep(0.1)  # it asks by itself, and tells nobody

    assert (found["effect"], found["reason"]) == ("deny", "ask Ada (because you are in the group `students`)")
    library = evaluate("library")
    assert (library["effect"], library["reason"]) == ("allow", "because you are in the group `students`")


def test_what_a_kernel_puts_into_environments_and_files_makes_nobody_a_member(
    hub: Hub, evaluate: Callable[[str], Any]
) -> None:
    code = (
        "import os, pathlib\n"
        "for name in ('JUPYTERHUB_GROUPS', 'JUPYTERHUB_USER_GROUPS'): os.environ[name] = 'teachers'\n"
        "home = pathlib.Path.home() / '.jupyter'; home.mkdir(exist_ok=True)\n"
        "(home / 'agentbox_rules.json').write_text("
        '\'{"rules": [{"effect": "allow", "server": "lab", "tool": "*", "groups": ["students"]}]}\')\n'
        "print('written')"
    )
    try:
        with hub.kernel() as kernel:
            assert "written" in run(kernel, code)
        assert evaluate("lab")["effect"] == "deny"
        _, policy = hub.ask(f"{hub.server()}{API}policy", token=hub.token_of(OWNER))
        assert "`groups` can stand in a site's file only" in policy["problems"][0]["message"]
    finally:
        (hub.root / "homes" / OWNER / ".jupyter" / "agentbox_rules.json").unlink(missing_ok=True)
