from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS, SandboxSettings
from jupyter_agentbox.exceptions import SandboxConfigError


def test_settings_come_back_as_they_were_given() -> None:
    given = {"levels": ["landlock"], "readable": ["/data"], "memory_limit": 1 << 30, "temporary_limit": None}

    settings = SandboxSettings.from_mapping(given)

    assert given.items() <= settings.as_json().items()
    assert SandboxSettings.from_mapping(settings.as_json()) == settings


def test_what_is_missing_has_its_default() -> None:
    assert SandboxSettings.from_mapping({}) == SandboxSettings()
    assert SandboxSettings().levels == tuple(level.value for level in SANDBOX_LEVELS)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([], "an object"),
        ({"readble": []}, "`readble` is not a setting"),
        ({"levels": []}, "`levels`"),
        ({"levels": ["none"]}, "`levels`"),
        ({"levels": "landlock"}, "`levels`"),
        ({"work_dir": 3}, "`work_dir`"),
        ({"work_dir": "a\0b"}, "`work_dir`"),
        ({"readable": "/data"}, "`readable`"),
        ({"writable": [1]}, "`writable`"),
        ({"hidden": [""]}, "`hidden`"),
        ({"allowed_domains": "example.com"}, "`allowed_domains`"),
        ({"allowed_domains": ["*.com"]}, "`*.com` is too wide"),
        ({"private_domains": ["10.0.0.0/8"]}, "`10.0.0.0/8` cannot be allowed"),
        ({"memory_limit": "4G"}, "`memory_limit`"),
        ({"process_limit": True}, "`process_limit`"),
        ({"file_size_limit": -1}, "`file_size_limit`"),
        ({"temporary_limit": 0}, "`temporary_limit`"),
    ],
)
def test_settings_that_are_not_understood_are_named(given: Any, named: str) -> None:
    with pytest.raises(SandboxConfigError) as refusal:
        SandboxSettings.from_mapping(given, source="`box.json`")

    assert str(refusal.value).startswith("`box.json`: ")
    assert named in str(refusal.value)
