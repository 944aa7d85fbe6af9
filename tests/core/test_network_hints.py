from __future__ import annotations

from jupyter_agentbox.core.network_hints import network_hint


def test_without_domains_the_network_is_what_is_missing() -> None:
    hint = network_hint([])

    assert "has no network" in hint
    assert "allowed_domains" in hint


def test_the_domains_that_can_be_reached_are_named_but_not_all_of_many() -> None:
    assert "reaches only a.org, b.org, through" in network_hint(["a.org", "b.org"])

    many = network_hint([f"d{number}.org" for number in range(10)])
    assert "d7.org and 2 more, through" in many
    assert "d8.org" not in many
