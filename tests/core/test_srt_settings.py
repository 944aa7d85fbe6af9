from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.core.srt_settings import path_of, taken
from jupyter_agentbox.exceptions import SandboxConfigError

#: The example of srt's own documentation, but for the socket and the patterns.
FILE: dict[str, Any] = {
    "network": {
        "allowedDomains": ["github.com", "*.github.com"],
        "deniedDomains": ["malicious.com"],
        "allowUnixSockets": [],
        "allowLocalBinding": False,
    },
    "filesystem": {
        "denyRead": ["~/.ssh"],
        "allowRead": [],
        "allowWrite": [".", "src/", {"path": "/data/[1]", "literal": True}],
        "denyWrite": [".env"],
    },
    "ignoreViolations": {"*": ["/usr/bin"]},
    "enableWeakerNestedSandbox": False,
    "allowAppleEvents": False,
}


def test_its_file_stands_for_settings_of_its_level() -> None:
    settings = SandboxSettings.from_mapping(FILE)

    assert settings == SandboxSettings(levels=("srt",), srt_settings=FILE)
    assert SandboxSettings.from_mapping(settings.as_json()) == settings


def test_only_what_is_known_is_taken() -> None:
    assert taken(FILE, "network") == {
        "allowedDomains": ["github.com", "*.github.com"],
        "deniedDomains": ["malicious.com"],
    }
    assert taken({}, "filesystem") == {}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"network": {"allowUnixSockets": ["/var/run/docker.sock"]}}, "`network.allowUnixSockets`"),
        ({"network": {"allowAllUnixSockets": True}}, "`network.allowAllUnixSockets`"),
        ({"network": {"allowLocalBinding": True}}, "`network.allowLocalBinding`"),
        ({"network": {"httpProxyPort": 8080}}, "`network.httpProxyPort`"),
        ({"filesystem": {"disabled": True}}, "`filesystem.disabled`"),
        ({"filesystem": {"allowRead": "/data"}}, "`filesystem.allowRead` must be a list"),
        ({"filesystem": {"allowRead": ["/home/*"]}}, "`/home/*` is a pattern"),
        ({"filesystem": {"allowWrite": [3]}}, "`3` is not a path"),
        ({"filesystem": {"allowWrite": [{"path": "/data"}]}}, "is not a path"),
        ({"filesystem": {}, "enableWeakerNestedSandbox": True}, "`enableWeakerNestedSandbox`"),
        ({"filesystem": {}, "bwrapPath": "./bwrap"}, "`bwrapPath`"),
        ({"filesystem": {}, "ripgrep": {"command": "./rg"}}, "`ripgrep`"),
        ({"network": "none"}, "`srt_settings` must be an object"),
    ],
)
def test_what_would_open_another_way_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(SandboxConfigError) as refusal:
        SandboxSettings.from_mapping(change)

    assert named in str(refusal.value)


def test_its_settings_are_for_its_level_alone() -> None:
    with pytest.raises(SandboxConfigError, match="only with the level `srt`"):
        SandboxSettings.from_mapping({"srt_settings": FILE})
    with pytest.raises(SandboxConfigError, match="only with the level `srt`"):
        SandboxSettings.from_mapping({"srt_settings": FILE, "levels": ["bubblewrap", "srt"]})


def test_a_path_is_a_text_or_marked_as_no_pattern() -> None:
    assert path_of("~/data") == "~/data"
    assert path_of({"path": "/data/*", "literal": True}) == "/data/*"
