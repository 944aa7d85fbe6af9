from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("turn the server's token into a cookie session, and call the REST API with the cookie")


def attack(facts: dict[str, Any]) -> Any:
    import http.cookiejar
    import json
    import pathlib
    import urllib.request

    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    told = [json.loads(path.read_text()) for path in pathlib.Path(facts["runtime"]).glob("jpserver-*.json")]
    browser.open(facts["url"] + "login?token=" + (told[0]["token"] if told else ""), timeout=5).close()
    with browser.open(facts["url"] + "jupyter-agentbox/approvals", timeout=5) as answer:
        return [answer.status, [cookie.name for cookie in jar]]


def test_the_token_gives_no_session(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
