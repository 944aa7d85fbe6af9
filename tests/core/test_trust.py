from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.trust import trust_key

STDIO: dict[str, Any] = {"transport": "stdio", "command": "shop", "args": ["--all", "x"], "env_names": ["A", "B"]}
HTTP: dict[str, Any] = {"transport": "http", "url": "https://shop.example/mcp", "header_names": ["Authorization", "X"]}


@pytest.mark.parametrize(
    ("known", "changed"),
    [
        (STDIO, {"command": "shop2"}),
        (STDIO, {"args": ["--all x"]}),
        (STDIO, {"args": ["x", "--all"]}),
        (STDIO, {"cwd": "/tmp"}),
        (STDIO, {"env_names": ["A"]}),
        (HTTP, {"url": "https://shop.example/other"}),
        (HTTP, {"header_names": ["Authorization"]}),
        (HTTP, {"transport": "stdio"}),
    ],
)
def test_another_command_or_address_is_another_server(known: dict[str, Any], changed: dict[str, Any]) -> None:
    assert trust_key(**{**known, **changed}) != trust_key(**known)


def test_the_order_of_variables_and_the_case_of_headers_make_no_other_server() -> None:
    assert trust_key(**{**STDIO, "env_names": ["B", "A"]}) == trust_key(**STDIO)
    assert trust_key(**{**HTTP, "header_names": ["x", "authorization"]}) == trust_key(**HTTP)
