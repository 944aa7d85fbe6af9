"""Which servers of a configuration are those of the Hub service."""

from __future__ import annotations

import pytest

from jupyter_agentbox.mcp_client.configuration import HttpServer, StdioServer, is_central

SERVICE = "https://hub.example.org/services/agentbox/"


@pytest.mark.parametrize("service", [SERVICE, SERVICE.rstrip("/")])
def test_a_server_below_the_address_of_the_service_is_one_of_it(service: str) -> None:
    assert is_central(HttpServer(name="w", url=f"{SERVICE}mcp/ware-house_2"), service)


@pytest.mark.parametrize(
    "url",
    [
        "https://hub.example.org/user/eve/proxy/8000/mcp/warehouse",
        "https://hub.example.org.evil.example/services/agentbox/mcp/warehouse",
        f"{SERVICE}mcp/../../../user/eve/mcp/warehouse",
        f"{SERVICE}mcp/%2e%2e",
        f"{SERVICE}mcp/..",
        f"{SERVICE}mcp/",
        f"{SERVICE}mcp/warehouse?to=https://evil.example",
        "http://hub.example.org/services/agentbox/mcp/warehouse",
    ],
)
def test_any_other_address_is_not(url: str) -> None:
    assert not is_central(HttpServer(name="w", url=url), SERVICE)


def test_neither_is_a_program_or_anything_where_there_is_no_service() -> None:
    assert not is_central(StdioServer(name="w", command="python"), SERVICE)
    assert not is_central(HttpServer(name="w", url="/mcp/warehouse"), "")
