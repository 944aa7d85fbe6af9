from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("start a kernel without a sandbox through the server's REST API")


def attack(facts: dict[str, Any]) -> Any:
    import glob
    import json
    import urllib.request

    told = [json.load(open(path)) for path in glob.glob(facts["runtime"] + "/jpserver-*.json")]
    request = urllib.request.Request(
        facts["url"] + "api/kernels",
        method="POST",
        data=json.dumps({"name": "at-none"}).encode(),
        headers={"Authorization": "token " + (told[0]["token"] if told else "")},
    )
    return json.load(urllib.request.urlopen(request, timeout=20))["id"]


def test_no_other_kernel_can_be_started(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
