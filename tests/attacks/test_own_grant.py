from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("give oneself a lasting answer over the REST API, with the server's token")


def attack(facts: dict[str, Any]) -> Any:
    import json
    import pathlib
    import threading
    import time
    import urllib.request

    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    path = next(pathlib.Path(facts["runtime"]).glob("jpserver-*.json"))
    token = json.loads(path.read_text())["token"]
    answers: list[Any] = []

    def ask() -> None:
        answers.append(link.call("ledger", "granted", {"by": "itself"}).text)

    threading.Thread(target=ask, daemon=True).start()
    for _ in range(200):
        mine = [found for found in link.list_pending(within=60) if found["tool"] == "granted"]
        if mine:
            break
        time.sleep(0.05)

    def api(method: str, part: str, body: dict[str, object] | None = None) -> dict[str, dict[str, str]]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "token " + token}
        request = urllib.request.Request(facts["url"] + part, method=method, data=data, headers=headers)
        return json.loads(urllib.request.urlopen(request, timeout=5).read() or b"null")

    place = "jupyter-agentbox/approvals/" + mine[0]["id"]
    digest = api("GET", place)["call"]["digest"]
    terms = {"scope": "user", "uses": 2}
    api("POST", place + "/decision", {"decision": "allow_always", "digest": digest, "grant": terms})
    return link.call("ledger", "granted", {"by": "itself", "again": True}).text


def test_no_code_gives_itself_a_lasting_answer(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
