"""Firefox, driven by WebDriver BiDi, which Debian's build speaks; Playwright needs a build of its own.

Source: https://w3c.github.io/webdriver-bidi/
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE = 60

#: Firefox asks its maker for this and that; here it asks for nothing.
PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.safebrowsing.downloads.remote.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.systemAddon.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}

#: Evaluates until the value is true, or the time is over.
_AWAIT = """async () => {
  for (let end = Date.now() + %d; Date.now() < end; await new Promise(go => setTimeout(go, 50))) {
    const value = await (%s)();
    if (value) { return JSON.stringify(value); }
  }
  throw new Error('it did not become true');
}"""
#: The same for an element that has stayed in its place since half a second: a page that fills moves what is in it.
_AWAIT_ELEMENT = """async () => {
  let place = '', since = 0;
  for (let end = Date.now() + %d; Date.now() < end; await new Promise(go => setTimeout(go, 50))) {
    const element = await (%s)();
    const now = element ? JSON.stringify(element.getBoundingClientRect()) : '';
    if (now !== place) { place = now; since = Date.now(); }
    if (element && Date.now() - since >= 500) { return element; }
  }
  throw new Error('there was no such element that stayed in its place');
}"""


class Firefox:
    """One window.

    Parameters
    ----------
    connection : WebSocket
        To Firefox's remote agent.
    """

    def __init__(self, connection: websocket.WebSocket) -> None:
        self._connection = connection
        self._ids = itertools.count(1)
        self._ask("session.new", capabilities={})
        self._context: str = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def add_init_script(self, script: str) -> None:
        """Run a script in each page before the page's own."""
        self._ask("script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}")

    def goto(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        self._ask("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def wait_for_function(self, function: str) -> Any:
        """Wait until a function of the page returns what is true; return that."""
        return json.loads(self._call(_AWAIT, function)["value"])

    def click(self, function: str) -> None:
        """Wait until a function of the page returns an element; press and release the pointer on the middle of it.

        The pointer goes there first: a card that nobody was near for some seconds is looked at anew when it moves.
        """
        for buttons in ([], ["pointerDown", "pointerUp"]):
            answer = self._call(_AWAIT_ELEMENT, function)
            middle = {"type": "element", "element": {"sharedId": answer["sharedId"]}}
            actions: list[dict[str, Any]] = [{"x": 0, "y": 0, "type": "pointerMove", "origin": middle}]
            actions += [{"type": button, "button": 0} for button in buttons]
            pointer = {"type": "pointer", "id": "pointer", "actions": actions}
            self._ask("input.performActions", context=self._context, actions=[pointer])

    def _call(self, awaiting: str, function: str) -> Any:
        answer = self._ask(
            "script.callFunction",
            functionDeclaration=awaiting % (PATIENCE * 1000, function),
            target={"context": self._context},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise TimeoutError(f"{answer['exceptionDetails']['text']}: {function}")
        return answer["result"]

    def _ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._ids)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._connection.recv())
            if answer.get("id") == number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]


@contextmanager
def running_firefox(profile: Path) -> Iterator[Firefox]:
    """Start Firefox with a profile of its own, and stop it in the end."""
    assert FIREFOX
    profile.mkdir()
    lines = [f'user_pref("{name}", {json.dumps(value)});\n' for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    with (
        (profile / "firefox.log").open("w") as log,
        subprocess.Popen([*command, "about:blank"], stdout=log, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        try:
            found = next(filter(None, (re.search(r"BiDi listening on (ws://\S+)", line) for line in process.stderr)))
            connection = websocket.create_connection(f"{found[1]}/session", timeout=2 * PATIENCE, suppress_origin=True)
            try:
                yield Firefox(connection)
            finally:
                connection.close()
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)
