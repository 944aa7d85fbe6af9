"""What a person saw, and may have edited, with the secrets that were hidden."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.site_policy import Feature, Lock, ServerPattern, SitePolicy
from jupyter_agentbox.exceptions import ServerConfigurationError, ToolServerError
from jupyter_agentbox.mcp_client.limits import ServerLimits, safe_working_directory
from jupyter_agentbox.mcp_client.registry import ServerRegistry

GIVEN: Any = {
    "command": "server",
    "env": {"API_KEY": "s3cr3t-1", "MODE": "fast"},
    "url": "https://example.org/mcp?token=s3cr3t-2",
}
REGISTRY = ServerRegistry(known=list, keep=lambda *_: None, limits=ServerLimits())


def test_what_was_not_edited_has_its_secrets_again() -> None:
    shown = REGISTRY.shown(GIVEN)

    assert "s3cr3t" not in str(shown)
    assert REGISTRY.restored(shown, GIVEN) == GIVEN


@pytest.mark.parametrize("key", ["oauth", "auth"])
def test_a_client_secret_that_was_not_edited_is_the_same_again(key: str) -> None:
    given: Any = {"url": "https://example.org/mcp", key: {"clientId": "jupyter", "clientSecret": "s3cr3t-3"}}
    shown = REGISTRY.shown(given)

    assert "s3cr3t" not in str(shown)
    assert REGISTRY.restored(shown, given) == given


def test_an_edited_value_is_as_it_was_edited() -> None:
    shown: Any = REGISTRY.shown(GIVEN)
    edited = {**shown, "command": "other", "env": {**shown["env"], "MODE": "slow", "API_KEY": "${MY_KEY}"}}

    assert REGISTRY.restored(edited, GIVEN) == {
        **GIVEN,
        "command": "other",
        "env": {"API_KEY": "${MY_KEY}", "MODE": "slow"},
    }


@pytest.mark.parametrize(
    "edit",
    [
        {"env": {"OTHER_KEY": "***"}},
        {"env": {"API_KEY": "*** and more"}},
        {"url": "https://elsewhere.example.org/mcp?token=***"},
        {"headers": {"Authorization": "***"}},
        {"oauth": {"clientSecret": "***"}},
    ],
)
def test_a_hidden_value_goes_nowhere_else(edit: Any) -> None:
    with pytest.raises(ServerConfigurationError, match="hidden"):
        REGISTRY.restored({**REGISTRY.shown(GIVEN), **edit}, GIVEN)


@pytest.mark.parametrize(
    ("policy", "configuration"),
    [
        (
            SitePolicy(denied=(ServerPattern(command=("bash", "-c", "true")),)),
            {"command": "bash", "args": ["-c", "true"]},
        ),
        (SitePolicy(allowed=(ServerPattern(url="https://crm.example/*"),)), {"command": "uvx"}),
        (
            SitePolicy(allowed=(ServerPattern(url="https://crm.example/*"),)),
            {"url": "https://crm.example/mcp", "headersHelper": "bash -c true"},
        ),
        (SitePolicy(features={Feature.LOCAL_SERVERS: Lock.FORCE_OFF}), {"command": "uvx"}),
    ],
)
def test_what_the_site_forbids_is_not_tried_out(policy: SitePolicy, configuration: Any) -> None:
    registry = ServerRegistry(known=list, keep=lambda *_: None, limits=ServerLimits(), policy=lambda: policy)
    REGISTRY.check("new", configuration)

    with pytest.raises(ServerConfigurationError, match="`new` was not registered: "):
        registry.check("new", configuration)


async def test_server_is_tried_out_where_no_kernel_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    for place in (work, home):
        place.mkdir()
    (work / "planted.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(home))
    here = ServerRegistry(known=list, keep=lambda *_: None, limits=ServerLimits())
    apart = partial(safe_working_directory, lambda place: place == work.resolve())
    elsewhere = ServerRegistry(known=list, keep=lambda *_: None, limits=ServerLimits(default_cwd=apart))
    entry: Any = {"command": sys.executable, "args": ["-m", "planted"]}

    with pytest.raises(ToolServerError):
        await here.try_out("planted", entry)
    ran_here = (work / "ran").exists()
    (work / "ran").unlink()
    with pytest.raises(ToolServerError):
        await elsewhere.try_out("planted", entry)

    assert (ran_here, (work / "ran").exists(), list(home.iterdir())) == (True, False, [])
