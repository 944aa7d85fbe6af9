"""``jupyter agentbox doctor --hub``: each set-up that is broken in one way is named, with what to do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from jupyter_agentbox import doctor, hub_doctor
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.rule_book import HubPolicyStatus, RuleBook
from jupyter_agentbox.core.site_policy import SiteAudit, SitePolicy
from jupyter_agentbox.doctor_checks import Check

NOW = datetime(2026, 11, 25, 3, 0, tzinfo=UTC)
OWN = ("access:servers!server=ada/", "users:activity!user=ada")
DECIDES = "custom:agentbox:decide!user=ada"


@pytest.fixture
def hub() -> Iterator[str]:
    """A Hub that knows one token, whose user may decide."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = (self.path, self.headers["Authorization"]) == ("/hub/api/user", "token hunter2")
            is_moved = self.path == "/moved/user"
            self.send_response(302 if is_moved else 200 if is_known else 403)
            if is_moved:
                self.send_header("Location", "/hub/api/user")
            self.end_headers()
            self.wfile.write(json.dumps({"name": "ada", "scopes": [*OWN, DECIDES]}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hub/api"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_hub_is_asked_and_no_line_has_the_token(hub: str) -> None:
    environment = {"JUPYTERHUB_API_URL": hub, "JUPYTERHUB_API_TOKEN": "hunter2"}

    answer = hub_doctor.ask_hub(environment)
    checks = [hub_doctor.token(answer), hub_doctor.clock(answer, datetime.now(UTC))]

    assert [check.state for check in checks] == ["problem", "ok"]
    assert DECIDES in checks[0].text
    assert "hunter2" not in "".join(map(str, checks))
    for changed in (
        {"JUPYTERHUB_API_TOKEN": "other"},
        {"JUPYTERHUB_API_TOKEN": ""},
        {"JUPYTERHUB_API_URL": "http://127.0.0.1:1"},
        {"JUPYTERHUB_API_URL": hub.replace("/hub/api", "/moved")},
    ):
        assert hub_doctor.ask_hub({**environment, **changed}).problem


def a_policy(version: int | None, problem: str = "") -> RuleBook:
    status = HubPolicyStatus(hub="hub.example", url="https://hub", version=version, problem=problem)
    return RuleBook(hub_policy=status, site=SitePolicy(audit=SiteAudit(sinks=("syslog:///dev/log",))))


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (hub_doctor.token(hub_doctor.HubAnswer(scopes=(*OWN, "admin:users"))), "Hub token"),
        (hub_doctor.token(hub_doctor.HubAnswer(scopes=(*OWN, "custom:agentbox:manage!user=ada"))), "Hub token"),
        (hub_doctor.clock(hub_doctor.HubAnswer(at=NOW - timedelta(minutes=5)), NOW), "clock"),
        (next(hub_doctor.configuration({}, [])), "configuration"),
        (hub_doctor.level([], {}), "sandbox level"),
        (hub_doctor.level([Isolation.SRT], {"JUPYTER_AGENTBOX_MIN_ISOLATION": "landlock"}), "sandbox level"),
        (hub_doctor.sinks(RuleBook()), "audit sinks"),
        (hub_doctor.public_url({}), "public URL"),
        (hub_doctor.policy(a_policy(None, "its signature is another's")), "policy of the Hub service"),
    ],
)
def test_what_is_broken_is_named_with_what_to_do(check: Check, name: str) -> None:
    assert (check.name, check.state, bool(check.advice)) == (name, "problem", True)


@pytest.mark.parametrize(
    "check",
    [
        hub_doctor.token(hub_doctor.HubAnswer(scopes=OWN)),
        hub_doctor.clock(hub_doctor.HubAnswer(at=NOW), NOW + timedelta(seconds=5)),
        next(hub_doctor.configuration({"JUPYTERHUB_DISABLE_USER_CONFIG": "1"}, [])),
        hub_doctor.level([Isolation.LANDLOCK], {"JUPYTER_AGENTBOX_MIN_ISOLATION": "landlock"}),
        hub_doctor.sinks(a_policy(7)),
        hub_doctor.public_url({"JUPYTERHUB_PUBLIC_URL": "https://hub.example/user/ada/"}),
        hub_doctor.policy(a_policy(7)),
        hub_doctor.policy(RuleBook()),
    ],
)
def test_what_is_sound_is_no_problem(check: Check) -> None:
    assert check.state == "ok"


def test_a_site_file_that_the_user_can_write_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "agentbox_rules.json"
    path.write_text("{}")
    path.chmod(0o666)

    checks = list(hub_doctor.configuration({}, [path, tmp_path / "missing.json"]))

    assert [(check.name, check.state) for check in checks[1:]] == [("site's rules", "problem")]


def test_a_kernelspec_of_the_user_that_hides_one_of_the_site_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_doctor, "is_site", lambda path: (tmp_path / "site") in (path, *path.parents))
    for place in ("user", "site"):
        (tmp_path / place / "agentbox-sandbox").mkdir(parents=True)
        (tmp_path / place / "agentbox-sandbox" / "kernel.json").write_text("{}")

    hidden = hub_doctor.kernelspecs([tmp_path / "user", tmp_path / "site"])

    assert (hidden.state, "agentbox-sandbox" in hidden.text) == ("problem", True)
    assert hub_doctor.kernelspecs([tmp_path / "site", tmp_path / "user"]).state == "ok"


def test_the_option_adds_these_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "examine", lambda **_: iter(()))
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    monkeypatch.setattr(doctor, "why_unavailable", lambda _level: "not tried here")

    assert doctor.main(["--hub", "--json"]) == doctor.PROBLEMS
    names = [one["name"] for one in json.loads(capsys.readouterr().out)]
    assert names[0] == "Hub token"
    assert {"configuration", "kernelspecs", "sandbox level", "audit sinks", "public URL", "clock"} < set(names)
