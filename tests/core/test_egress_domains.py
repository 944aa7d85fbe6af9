from __future__ import annotations

from ipaddress import ip_address

import pytest

from jupyter_agentbox.core.egress_domains import DomainRule, DomainRules, Kind, authority_of, host_of, kind_of

OWN = {ip_address("10.1.2.3"), ip_address("2600::5"), ip_address("198.51.101.7")}


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.Com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("x_y.example", "x_y.example"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7.", "192.0.2.7"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("[2001:DB8:0::1]", "2001:db8::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("7.example", "7.example"),
    ],
)
def test_a_host_has_one_form(text: str, host: str) -> None:
    assert host_of(text) == host


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "a..b", ".a", "a b", "-a.example", "a-.example", "a/b", "user@example.com", "exam%70le.com", "a\\b"),
        *("2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.1", "example.1", "a.0x"),
        *("::1", "[::1", "[::1%lo]", "[127.0.0.1]", "[]", "straße.example", "a\u200db.example"),
        *("a" * 64 + ".example", ".".join(["a" * 60] * 5), "ü" * 300, "\0", "*.example.com"),
    ],
)
def test_what_is_not_a_host_in_its_usual_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        host_of(text)


@pytest.mark.parametrize(
    ("text", "authority"),
    [
        ("example.com", ("example.com", None)),
        ("example.com:8443", ("example.com", 8443)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_authority_is_a_host_and_perhaps_a_port(text: str, authority: tuple[str, int | None]) -> None:
    assert authority_of(text) == authority


@pytest.mark.parametrize("text", ["a:b", "a:0", "a:65536", "a:", "a:1:2", "::1", "http://a", "[::1]x", "a:+1", "a:1 "])
def test_what_is_not_an_authority_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        authority_of(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*", "a `*`|not a host name"),
        ("*.com", "too wide"),
        ("*.192.0.2.7", "too wide"),
        ("www.*.example", "only before a domain"),
        ("https://example.com", "not `host`"),
        ("example.com/path", "not a host name"),
        ("0.0.0.0", "one machine"),
        ("[ff02::1]", "one machine"),
        ("2130706433", "cannot be allowed"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused_by_their_name(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refusal:
        DomainRule.parse(text)

    assert f"`{text}`" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "host", "covers"),
    [
        ("example.com", "example.com", True),
        ("Example.COM.", "example.com", True),
        ("example.com", "www.example.com", False),
        ("example.com", "notexample.com", False),
        ("example.com", "example.com.evil.example", False),
        ("*.example.com", "www.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "notexample.com", False),
        ("192.0.2.7", "192.0.2.7", True),
        ("[::ffff:192.0.2.7]", "192.0.2.7", True),
    ],
)
def test_a_rule_is_for_a_name_or_for_all_below_it(text: str, host: str, covers: bool) -> None:
    assert DomainRule.parse(text).covers(host) is covers


@pytest.mark.parametrize(
    ("rule", "port", "tunnel", "allowed"),
    [
        ("example.com", 443, True, True),
        ("example.com", 80, False, True),
        ("example.com", 80, True, False),
        ("example.com", 443, False, False),
        ("example.com", 22, True, False),
        ("example.com:8443", 8443, True, True),
        ("example.com:8443", 8443, False, True),
        ("example.com:8443", 443, True, False),
    ],
)
def test_ports_are_the_usual_ones_or_the_one_that_is_named(rule: str, port: int, tunnel: bool, allowed: bool) -> None:
    verdict = DomainRules.of([rule], []).find("example.com", port, tunnel=tunnel)

    assert bool(verdict.matched) is allowed
    assert (verdict.reason == "") is allowed
    assert allowed or f"port {port} of example.com" in verdict.reason


def test_a_domain_that_no_rule_covers_is_named() -> None:
    verdict = DomainRules.of(["example.com"], ["*.intranet.example"]).find("example.org", 443, tunnel=True)

    assert verdict.matched == ()
    assert verdict.reason.startswith("example.org is not an allowed domain")


def test_without_rules_nothing_is_allowed() -> None:
    assert not DomainRules()
    assert DomainRules().find("example.com", 443, tunnel=True).matched == ()
    assert DomainRules.of(["example.com"], [])


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("93.184.216.34", Kind.PUBLIC),
        ("2606:2800:220:1::1", Kind.PUBLIC),
        ("64:ff9b::5db8:d822", Kind.PUBLIC),
        ("10.0.0.1", Kind.PRIVATE),
        ("172.16.0.1", Kind.PRIVATE),
        ("192.168.1.1", Kind.PRIVATE),
        ("100.64.0.1", Kind.PRIVATE),
        ("203.0.113.9", Kind.PRIVATE),
        ("fd00::1", Kind.PRIVATE),
        ("fec0::1", Kind.PRIVATE),
        ("::7f00:1", Kind.PRIVATE),
        ("2002:a00:1::", Kind.PRIVATE),
        ("64:ff9b::a00:1", Kind.PRIVATE),
        ("2001:0:53aa:64c::", Kind.PRIVATE),
        ("127.0.0.1", Kind.MACHINE),
        ("127.9.9.9", Kind.MACHINE),
        ("::1", Kind.MACHINE),
        ("::ffff:127.0.0.1", Kind.MACHINE),
        ("64:ff9b::7f00:1", Kind.MACHINE),
        ("2002:7f00:1::", Kind.MACHINE),
        ("10.1.2.3", Kind.MACHINE),
        ("198.51.101.7", Kind.MACHINE),
        ("::ffff:198.51.101.7", Kind.MACHINE),
        ("2600::5", Kind.MACHINE),
        ("169.254.169.254", Kind.NEVER),
        ("::ffff:169.254.169.254", Kind.NEVER),
        ("fe80::1", Kind.NEVER),
        ("224.0.0.1", Kind.NEVER),
        ("ff02::1", Kind.NEVER),
        ("0.0.0.0", Kind.NEVER),
        ("::", Kind.NEVER),
        ("255.255.255.255", Kind.NEVER),
        ("240.0.0.1", Kind.NEVER),
        ("168.63.129.16", Kind.NEVER),
        ("fd00:ec2::254", Kind.NEVER),
    ],
)
def test_addresses_are_told_apart(address: str, kind: Kind) -> None:
    assert kind_of(ip_address(address), OWN) is kind


@pytest.mark.parametrize(
    ("allowed", "private", "host", "address", "can"),
    [
        ("a.example", "", "a.example", "93.184.216.34", True),
        ("a.example", "", "a.example", "10.0.0.1", False),
        ("a.example", "", "a.example", "127.0.0.1", False),
        ("a.example", "", "a.example", "198.51.101.7", False),
        ("a.example", "", "a.example", "169.254.169.254", False),
        ("", "a.example", "a.example", "93.184.216.34", True),
        ("", "a.example", "a.example", "10.0.0.1", True),
        ("", "a.example", "a.example", "127.0.0.1", True),
        ("", "a.example", "a.example", "10.1.2.3", True),
        ("", "a.example", "a.example", "169.254.169.254", False),
        ("", "*.b.example", "a.b.example", "10.0.0.1", True),
        ("", "*.b.example", "a.b.example", "127.0.0.1", False),
        ("", "*.b.example", "a.b.example", "10.1.2.3", False),
        ("10.0.0.1", "", "10.0.0.1", "10.0.0.1", True),
        ("127.0.0.1", "", "127.0.0.1", "127.0.0.1", True),
        ("169.254.169.254", "", "169.254.169.254", "169.254.169.254", True),
        ("[::1]", "", "::1", "::1", True),
        ("*.b.example", "a.b.example", "a.b.example", "10.0.0.1", True),
        ("*.b.example", "a.b.example", "c.b.example", "10.0.0.1", False),
    ],
)
def test_where_a_name_may_lead_is_said_for_each_name(
    allowed: str, private: str, host: str, address: str, can: bool
) -> None:
    rules = DomainRules.of([allowed] if allowed else [], [private] if private else [])
    matched = rules.find(host, 443, tunnel=True).matched
    assert matched

    verdict = rules.check(host, ip_address(address), matched=matched, own=OWN)

    assert bool(verdict.matched) is can
    assert (verdict.reason == "") is can
    assert can or verdict.reason.startswith(f"{host} leads to ")
