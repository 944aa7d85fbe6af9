from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read the server's token in the runtime directory and call the REST API with it")


def attack(facts: dict[str, Any]) -> Any:
    import json
    import pathlib
    import urllib.request

    for path in pathlib.Path(facts["runtime"]).glob("jpserver-*.json"):
        told = json.loads(path.read_text())
        url = told["url"] + "jupyter-agentbox/approvals"
        request = urllib.request.Request(url, headers={"Authorization": "token " + told["token"]})
        return urllib.request.urlopen(request, timeout=5).status
    return None


def test_the_runtime_directory_gives_no_token(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
