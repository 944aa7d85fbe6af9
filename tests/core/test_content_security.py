from __future__ import annotations

import pytest

from jupyter_agentbox.core.content_security import DIRECTIVES, check_sources, content_security_policy


def directives(policy: str) -> dict[str, list[str]]:
    return {name: values for name, *values in (part.split() for part in policy.split("; "))}


def test_nothing_is_loaded_from_another_origin() -> None:
    for name, values in directives(content_security_policy("localhost:8888")).items():
        own = {"'self'", "'unsafe-inline'", "'unsafe-eval'", "blob:", "data:"}
        if name == "connect-src":
            own |= {"ws://localhost:8888", "wss://localhost:8888"}
        assert set(values) <= own, name


def test_what_jupyterlab_does_itself_is_allowed() -> None:
    found = directives(content_security_policy("localhost:8888"))

    assert all("'self'" in values for values in found.values())
    assert {"'unsafe-inline'", "'unsafe-eval'", "blob:"} <= set(found["script-src"])
    assert "'unsafe-inline'" in found["style-src"]
    assert {"data:", "blob:"} <= set(found["img-src"])


@pytest.mark.parametrize("host", ["example.org", "localhost:8888", "[::1]:8888", "a_b.example.org:1"])
def test_the_websockets_of_the_host_are_allowed(host: str) -> None:
    assert {f"ws://{host}", f"wss://{host}"} <= set(directives(content_security_policy(host))["connect-src"])


@pytest.mark.parametrize("host", ["", "a b", "a;img-src *", "a,b", "a/b", "a\n", "[::1", "*"])
def test_what_is_no_host_adds_nothing(host: str) -> None:
    assert content_security_policy(host) == content_security_policy("")


def test_a_site_can_add_sources() -> None:
    sources = {"img-src": ["https://images.example.org"], "font-src": ["https:", "http://x"]}
    found = directives(content_security_policy("h", sources))

    assert found["img-src"] == [*DIRECTIVES["img-src"], "https://images.example.org"]
    assert found["font-src"] == [*DIRECTIVES["font-src"], "https:", "http://x"]
    assert found["script-src"] == list(DIRECTIVES["script-src"])
    check_sources(sources)


@pytest.mark.parametrize(
    "sources",
    [{"image-src": ["https:"]}, {"img-src": "https:"}, {"img-src": ["https: http:"]}, {"img-src": ["a;b"]},
     {"img-src": ["a,b"]}, {"img-src": [""]}],
)  # fmt: skip
def test_what_cannot_be_in_a_policy_is_refused(sources: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="src"):
        check_sources(sources)
