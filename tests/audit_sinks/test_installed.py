"""Audit sinks of installed packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_agentbox import doctor
from jupyter_agentbox.audit_sinks.files import FileSink
from jupyter_agentbox.audit_sinks.sinks import sink_of
from jupyter_agentbox.core.audit_trail import AuditSettings
from jupyter_agentbox.hub.audit_sinks import AuditSinksError, sinks_of
from tests.distributions import install

MODULE = """
class Queue:
    def __init__(self, address, *, token_file, service):
        if "hunter2" in address:
            raise KeyError(address)
        self.name = "queue"
        self.made_of = (address, token_file, service)

    async def send(self, lines):
        pass


class Blocking:
    def __init__(self, address, **more):
        self.name = "blocking"

    def send(self, lines):
        pass


def nameless(address, **more):
    return object()
"""
POINTS = """
[jupyter_agentbox.audit_sinks]
queue = made_sinks:Queue
more+tls = made_sinks:Queue
file = made_sinks:Queue
blocking = made_sinks:Blocking
nameless = made_sinks:nameless
absent = made_sinks:Absent
nowhere = no_such_module:Queue
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "made_sinks.py").write_text(MODULE)
    install(tmp_path, "made-sinks", POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "made_sinks", raising=False)
    return tmp_path


@pytest.mark.parametrize("address", ["queue://broker/{user}", "QUEUE://broker/{user}", "more+tls://broker/{user}"])
def test_a_package_makes_the_sink_for_its_scheme_of_the_address_with_names(address: str) -> None:
    sink = sink_of(address, names={"user": "ada"}, token_file="/token", service="us")
    assert sink.made_of == (address.replace("{user}", "ada"), "/token", "us")  # type: ignore[attr-defined]


def test_no_package_gets_a_scheme_of_ours(tmp_path: Path) -> None:
    assert type(sink_of(f"file://{tmp_path}/log", names={})) is FileSink
    with pytest.raises(ValueError, match="not the address of an audit sink"):
        sink_of("file://host/log", names={})


def test_a_scheme_that_nobody_has_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"`kafka://broker` is not .* Supported are stdout:, .*, queue:") as refused:
        sink_of("kafka://me:hunter2@broker/topic", names={})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("scheme", "why"),
    [
        ("absent", "of the package `made-sinks` cannot be loaded: AttributeError: .*Absent"),
        ("nowhere", "of the package `made-sinks` cannot be loaded: ModuleNotFoundError: .*no_such_module"),
        ("nameless", "needs a `name`, which is a string, and an `async def send`"),
        ("blocking", "needs a `name`, which is a string, and an `async def send`"),
        ("queue", r"refuses this address \(KeyError\)"),
    ],
)
def test_a_broken_sink_says_what_is_wrong_and_not_what_the_address_is(scheme: str, why: str) -> None:
    address = f"{scheme}://hunter2@broker/topic"
    with pytest.raises(ValueError, match=f"the audit sink for `{scheme}:` .*{why}") as refused:
        sink_of(address, names={})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(AuditSinksError, match=r"entry 1 of `HubService\.audit_sinks`: "):
        sinks_of(AuditSettings(sinks=(address,)))
    found = doctor.sink(address, "", names={})
    assert (found.state, found.text) == ("problem", str(refused.value))


def test_a_scheme_that_two_packages_have_is_refused(installed: Path) -> None:
    install(installed, "other-sinks", "[jupyter_agentbox.audit_sinks]\nqueue = other:Queue\n")
    with pytest.raises(ValueError, match="`made-sinks`, the package `other-sinks`"):
        sink_of("queue://broker", names={})


def test_the_doctor_does_not_try_the_sink_of_a_package() -> None:
    assert doctor.sink("queue://no-such-host.invalid/a", "", names={}).state == "ok"
