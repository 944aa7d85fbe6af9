from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.sandbox_settings import SandboxSettings


@pytest.mark.parametrize(
    ("name", "ceiling", "asked", "expected"),
    [
        ("memory_limit", 100, 200, 100),
        ("memory_limit", 100, None, 100),
        ("memory_limit", None, 50, 50),
        ("memory_limit", None, None, None),
        ("levels", ["bubblewrap"], ["landlock", "bubblewrap"], ("bubblewrap",)),
        ("environment", ["DATA_*"], ["*", "DATA_X", "DATA_*", "DATA_?", "HOME"], ("DATA_X", "DATA_*")),
        ("allowed_domains", ["*.example.com"], ["a.example.com", "*.b.example.com", "example.org"], ("a.example.com",)),
        ("allowed_domains", [], ["example.org"], ()),
        ("writable", ["/data"], ["/data/mine", "/data/../etc", "/database", "/data"], ("/data/mine", "/data")),
        ("hidden", ["/keys"], ["/more"], ("/keys", "/more")),
        ("read_only", ["/rules"], [], ("/rules",)),
        ("unprotected", [], [".git"], ()),
        ("work_dir", "/work", "/elsewhere", "/work"),
        ("bubblewrap", "", "/opt/bwrap", "/opt/bwrap"),
    ],
)
def test_what_is_set_for_the_server_can_only_be_tightened(name: str, ceiling: Any, asked: Any, expected: Any) -> None:
    settings = SandboxSettings.from_mapping({name: asked} if asked is not None else {})

    assert getattr(settings.within({name: ceiling}), name) == expected


@pytest.mark.parametrize(
    ("ceiling", "asked"),
    [
        ({"allowed_domains": ["example.com"]}, {"private_domains": ["*.example.org"]}),
        ({"private_domains": ["example.com"]}, {"allowed_domains": ["example.org"]}),
        ({"readable": ["/data"]}, {"writable": ["/data"]}),
        (
            {"allowed_domains": []},
            {"levels": ["srt"], "srt_settings": {"network": {"allowedDomains": ["example.org"]}}},
        ),
        (
            {"readable": []},
            {"levels": ["srt"], "srt_settings": {"filesystem": {"allowRead": ["/a"], "allowWrite": ["/b"]}}},
        ),
    ],
)
def test_what_has_a_ceiling_is_not_granted_by_another_name(ceiling: dict[str, Any], asked: dict[str, Any]) -> None:
    settings = SandboxSettings.from_mapping(asked).within(ceiling)

    left = (settings.allowed_domains, settings.private_domains, settings.writable, *settings.srt_settings.values())
    assert not any(left)


def test_what_srt_is_told_to_deny_stays() -> None:
    network = {"deniedDomains": ["example.org"]}
    settings = SandboxSettings(srt_settings={"network": {**network, "allowedDomains": ["example.com"]}})

    assert settings.within({"allowed_domains": []}).srt_settings == {"network": network}


def test_what_is_not_set_for_the_server_stays() -> None:
    settings = SandboxSettings(memory_limit=5, environment=("*",))

    assert settings.within({}) == settings
