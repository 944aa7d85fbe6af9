"""The one way to write a host."""

from __future__ import annotations

import pytest

from jupyter_agentbox.core.hosts import canonical_host


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("A.Example.", "a.example"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("*.example", "*.example"),
        ("127.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x000000000007f.1", "127.0.0.1"),
        ("0000000000177.0.0.0x1", "127.0.0.1"),
        ("0x.1", "0.0.0.1"),
        ("\uff11\uff12\uff17.0.0.%31", "127.0.0.1"),
        ("10.256", "10.0.1.0"),
        ("256.0.0.1", "256.0.0.1"),
        ("1.2.3.256", "1.2.3.256"),
        ("09.1", "09.1"),
        ("1.2.3.4.5", "1.2.3.4.5"),
        ("0:0::1", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("1:2", "1:2"),
        ("", ""),
        ("a..b", "a..b"),
        ("\ud800", "\ud800"),
    ],
)
def test_hosts_that_lead_to_the_same_are_written_alike(host: str, canonical: str) -> None:
    assert canonical_host(host) == canonical
