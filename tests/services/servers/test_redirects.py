"""Which address a provider is given to send a person back to."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.exceptions import InvalidRequestError
from jupyter_agentbox.services.servers.redirects import KnownAddresses


def redirect(page: str, **known: Any) -> str:
    given = {"base_url": "/user/ada/", "hosts": ("hub.example",), **known}
    return KnownAddresses(**given).redirect_for(page, "my server")


@pytest.mark.parametrize(
    ("page", "known"),
    [
        ("https://hub.example/user/ada/", {}),
        ("https://hub.example/user/ada", {"origin": "https://hub.example"}),
        ("https://HUB.example/user/ada/", {}),
        ("https://jupyter.example/user/ada/", {"hosts": ("10.0.0.7:8888", "jupyter.example")}),
        ("https://jupyter.example/user/ada/", {"hosts": ("10.0.0.7:8888",), "public": ("https://jupyter.example/x",)}),
        (
            "https://lab.example/user/ada/",
            {"origin": "https://lab.example", "allow_origin": "https://lab.example"},
        ),
        (
            "https://lab.example/user/ada/",
            {"origin": "https://lab.example", "allow_origin_pat": r"https://.*\.example"},
        ),
        ("http://localhost:8888/user/ada/", {"hosts": ("localhost:8888",)}),
        ("http://[::1]:8888/user/ada/", {"hosts": ("[::1]:8888",)}),
    ],
)
def test_an_address_of_this_server_is_what_a_page_has_of_it(page: str, known: dict[str, Any]) -> None:
    assert redirect(page, **known) == f"{page.rstrip('/')}/jupyter-agentbox/oauth/callback/my%20server"


@pytest.mark.parametrize(
    ("page", "known"),
    [
        ("https://evil.example/user/ada/", {}),
        ("https://evil.example/user/ada/", {"origin": "https://evil.example"}),
        ("https://evil.example/user/ada/", {"origin": "https://evil.example", "allow_origin": "*"}),
        ("https://evil.example/user/ada/", {"origin": "https://hub.example"}),
        ("https://evil.example/user/ada/", {"origin": "https://evil.example", "allow_origin_pat": "https://.*hub"}),
        ("https://lab.example/user/ada/", {"allow_origin": "https://lab.example"}),
        ("https://hub.example/user/ada/", {"origin": "https://lab.example"}),
        ("https://hub.example/user/bob/", {}),
        ("https://hub.example/", {}),
        ("https://hub.example@evil.example/user/ada/", {}),
        ("https://hub.example:444/user/ada/", {}),
        ("https://hub.example/user/ada/?next=x", {}),
        ("https://hub.example/user/ada/#x", {}),
        ("javascript://hub.example/user/ada/", {}),
        ("http://hub.example/user/ada/", {}),
        ("hub.example", {}),
        ("https://[", {}),
        ("", {}),
    ],
)
def test_any_other_address_is_refused(page: str, known: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        redirect(page, **known)
