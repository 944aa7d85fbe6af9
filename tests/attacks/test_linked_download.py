from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

from .attack import Attack
from .conftest import TIMEOUT, Stage

ATTACK = Attack("let the server serve a secret as a file of the work directory, by a link")


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.symlink(facts["target"], "picture.svg")
    return "linked"


def test_the_server_serves_no_link_of_a_kernel(stage: Stage) -> None:
    world = stage.world
    secret = world.root / "home" / "diary.txt"
    secret.write_text(world.ssh_key)
    place = f"serving-{stage.level.value}"
    with stage.alone(place) as own:
        assert own.run(attack, target=str(secret)) == "linked", own.said
    said = {}
    for path in (f"files/{place}/picture.svg", f"files/{place}/picture.svg?download=1"):
        request = urllib.request.Request(world.url + path, headers={"Authorization": f"token {world.token}"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                said[path] = answer.read().decode()
        except urllib.error.HTTPError as error:
            said[path] = str(error.code)

    stage.said = str(said)
    stage.judge(ATTACK, world.ssh_key in said.values())
    assert set(said.values()) in ({world.ssh_key}, {"403"})
