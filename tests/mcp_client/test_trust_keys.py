from __future__ import annotations

from dataclasses import replace

from jupyter_agentbox.mcp_client.configuration import HttpServer, StdioServer, UnusableServer
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of

STDIO = StdioServer(name="shop", command="shop", args=("--all",), env={"TOKEN": "a"}, cwd="/srv")
HTTP = HttpServer(name="shop", url="https://shop.example/mcp", headers={"Authorization": "Bearer a"})


def test_values_of_variables_and_headers_are_no_part_of_a_servers_key() -> None:
    assert trust_key_of(replace(STDIO, env={"TOKEN": "b"}, timeout=5.0)) == trust_key_of(STDIO)
    assert trust_key_of(replace(HTTP, headers={"authorization": "Bearer b"})) == trust_key_of(HTTP)


def test_another_program_or_address_has_another_key() -> None:
    others = [
        HTTP,
        replace(STDIO, command="shop2"),
        replace(STDIO, args=()),
        replace(STDIO, cwd=None),
        replace(STDIO, env={}),
        replace(HTTP, url="https://shop.example/other"),
        replace(HTTP, headers={}),
        UnusableServer(name="shop", transport="stdio", error="disabled"),
    ]
    assert len({trust_key_of(each) for each in (STDIO, *others)}) == len(others) + 1
