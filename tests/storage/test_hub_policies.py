"""A signed policy in a user's server: what is taken, what is refused, and what holds when none comes.

The attacker has the network, the file that keeps the policy, and policies that were signed for somebody else or long
ago. They do not have the key.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.policy import Effect, Layer, Rule
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.site_policy import Feature, HubPolicySource, ServerPattern, SitePolicy
from jupyter_agentbox.exceptions import PolicyRefusedError
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.storage.hub_policies import HubPolicies
from jupyter_agentbox.storage.signed_policies import SignedPolicy, public_key_of, sign
from jupyter_agentbox.testing import FakeClock

KEY, OTHER_KEY = bytes(range(32)), bytes(32)
NOW = FakeClock().now()
DAY = timedelta(days=1)
CALL = ToolCall(server="git", tool="push", arguments={})
DENY: Any = {"rules": [{"effect": "deny", "server": "git", "tool": "push", "reason": "not from notebooks"}]}
ALLOW: Any = {"rules": [{"effect": "allow", "server": "git", "tool": "push"}]}


class Files:
    """Rules of files that a test sets; the site's file names the Hub service."""

    is_writable = True

    def __init__(self, *rules: Rule, site: SitePolicy | None = None) -> None:
        source = HubPolicySource(url="https://hub.example/api/policy", public_key=public_key_of(KEY), hub="hub.example")
        self.book = RuleBook(rules=rules, site=site or SitePolicy(hub_policy=source))

    def load(self) -> RuleBook:
        return self.book

    def write(self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None) -> None:
        raise NotImplementedError


def signed(policy: Any = DENY, *, key: bytes = KEY, **changes: Any) -> bytes:
    given: Any = {"hub": "hub.example", "user": "ada", "version": 7, "issued_at": NOW, "expires_at": NOW + DAY}
    return sign(SignedPolicy(policy=policy, **{**given, **changes}), key)


class Server:
    """The policy in the server of a user."""

    def __init__(self, directory: Path, *rules: Rule, user: str = "ada", site: SitePolicy | None = None) -> None:
        self.path = directory / "agentbox" / "hub-policy.json"
        self.clock = FakeClock()
        self.files = Files(*rules, site=site)
        self.user = user
        self.start()

    def start(self) -> None:
        self.policies = HubPolicies(self.files, path=self.path, user=self.user, clock=self.clock)

    def effect(self, call: ToolCall = CALL) -> Effect:
        return PolicyManager(source=self.policies).evaluate(call).effect

    @property
    def version(self) -> int | None:
        status = self.policies.load().hub_policy
        assert status is not None
        return status.version

    def refused(self, data: bytes) -> str:
        with pytest.raises(PolicyRefusedError) as error:
            self.policies.accept(data)
        status = self.policies.load().hub_policy
        assert status is not None
        assert str(error.value) in status.problem
        assert any(str(error.value) in problem.message for problem in self.policies.load().problems)
        return str(error.value)


def test_without_a_hub_service_the_rules_are_those_of_the_files(tmp_path: Path) -> None:
    server = Server(tmp_path, site=SitePolicy())
    assert server.policies.load() is server.files.book
    with pytest.raises(PolicyRefusedError):
        server.policies.accept(signed())


def test_until_a_policy_comes_everything_is_denied_and_off(tmp_path: Path) -> None:
    server = Server(tmp_path)
    evaluation = PolicyManager(source=server.policies).evaluate(CALL)
    assert evaluation.effect is Effect.DENY
    assert evaluation.rule is not None
    assert "none has come yet" in evaluation.rule.reason
    assert all(server.policies.load().site.is_off(feature) for feature in Feature)


def test_a_good_policy_holds_with_the_files_and_the_strictest_of_all_wins(tmp_path: Path) -> None:
    allow = Rule(server="*", tool="*", effect=Effect.ALLOW)
    server = Server(tmp_path, allow)
    policy = {**DENY, "features": {"grants": "force-off"}, "servers": {"deny": [{"url": "https://bad.example/*"}]}}
    server.policies.accept(signed(policy))

    book = server.policies.load()
    (rule, _) = book.rules
    assert (rule.layer, rule.file) == (Layer.SITE, "the policy of hub.example, version 7")
    assert server.effect() is Effect.DENY
    assert server.effect(ToolCall(server="git", tool="log", arguments={})) is Effect.ALLOW
    assert book.site.is_off(Feature.GRANTS)
    assert book.site.denied == (ServerPattern(url="https://bad.example/*"),)
    assert "administrator" in book.site.why_no_url("https://bad.example/x")
    assert server.policies.load() is book


def test_a_policy_that_allows_loosens_no_rule_of_a_file(tmp_path: Path) -> None:
    server = Server(tmp_path, Rule(server="git", tool="*", effect=Effect.DENY, layer=Layer.SITE))
    server.policies.accept(signed(ALLOW))
    assert server.effect() is Effect.DENY


def test_a_newer_policy_takes_the_place_of_the_last_without_a_restart(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.policies.accept(signed(DENY))
    assert server.effect() is Effect.DENY
    server.policies.accept(signed(ALLOW, version=8))
    assert (server.effect(), server.version) == (Effect.ALLOW, 8)


def a_changed(data: bytes) -> bytes:
    sent = json.loads(data)
    payload = sent["payload"]
    return json.dumps({**sent, "payload": payload[:40] + ("A" if payload[40] != "A" else "B") + payload[41:]}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (signed(ALLOW, version=9, key=OTHER_KEY), "its signature is not that of the key"),
        (a_changed(signed(ALLOW, version=9)), "its signature is not that of the key"),
        (signed(ALLOW, version=9)[:-20], "cut short"),
        (b"", "cut short"),
        (b"[]", "cut short"),
        (b'{"payload": "*", "signature": "*"}', "cut short"),
        (b"[" * 200_000, "cut short"),
        (b" " * 2_000_001, "more than"),
        (signed(ALLOW, version=9, user="bob"), "for the user `bob`"),
        (signed(ALLOW, version=9, hub="other.example"), "for `other.example`"),
        (signed(ALLOW, version=6), "older than version 7"),
        (signed(ALLOW, issued_at=NOW - DAY), "older than version 7"),
        (signed(ALLOW, version=9, expires_at=NOW), "it expired"),
        (signed(ALLOW, version=9, issued_at=NOW + DAY / 2), "in the future"),
        (signed({"rules": [{"effect": "allow"}]}, version=9), "not understood"),
        (signed({"rules": [], "features": {"new": "force-off"}}, version=9), "not understood"),
    ],
)
def test_what_is_not_good_is_refused_and_the_last_good_one_holds(tmp_path: Path, data: bytes, why: str) -> None:
    server = Server(tmp_path)
    server.policies.accept(signed(DENY))

    assert why in server.refused(data)

    assert (server.effect(), server.version) == (Effect.DENY, 7)
    server.start()  # nor is it kept
    assert (server.effect(), server.version) == (Effect.DENY, 7)


def test_the_last_good_policy_holds_after_a_restart_until_it_expires_and_then_everything_is_denied(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    server.policies.accept(signed(ALLOW))
    server.start()
    server.policies.fail("the Hub service does not answer: [Errno 111]")
    assert server.effect() is Effect.ALLOW
    assert "does not answer" in server.policies.load().problems[0].message

    server.clock.advance(DAY.total_seconds() + 1)
    assert (server.effect(), server.version) == (Effect.DENY, None)
    assert "expired" in server.policies.load().problems[0].message
    server.start()
    assert server.effect() is Effect.DENY


def test_who_deletes_or_changes_the_kept_policy_gains_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path, Rule(server="*", tool="*", effect=Effect.ALLOW))
    server.policies.accept(signed(DENY))
    assert server.path.stat().st_mode & 0o077 == 0
    server.path.unlink()
    assert server.effect() is Effect.DENY
    server.start()
    assert server.effect(ToolCall(server="git", tool="log", arguments={})) is Effect.DENY  # as it is closed
    for text in (signed(ALLOW, key=OTHER_KEY), signed(ALLOW, user="bob"), b"{}", b""):
        server.path.write_bytes(text)
        server.start()
        assert (server.effect(), server.version) == (Effect.DENY, None)
    server.path.unlink()
    server.path.mkdir()
    server.start()
    assert server.effect() is Effect.DENY


def test_a_server_of_no_user_takes_no_policy(tmp_path: Path) -> None:
    server = Server(tmp_path, user="")
    assert "for the user `ada`" in server.refused(signed(ALLOW))
    assert server.refused(signed(ALLOW, user=""))


def test_another_key_in_the_sites_file_counts_at_once(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.policies.accept(signed(ALLOW))
    other = HubPolicySource(
        url="https://hub.example/api/policy", public_key=public_key_of(OTHER_KEY), hub="hub.example"
    )
    server.files.book = RuleBook(site=SitePolicy(hub_policy=other))
    assert (server.effect(), server.version) == (Effect.DENY, None)
    server.policies.accept(signed(ALLOW, key=OTHER_KEY, version=1))
    assert server.effect() is Effect.ALLOW


def test_the_keys_signature_under_the_bare_text_is_none_under_a_policy(tmp_path: Path) -> None:
    server = Server(tmp_path)
    sent = json.loads(signed(ALLOW))
    bare = Ed25519PrivateKey.from_private_bytes(KEY).sign(b64decode(sent["payload"]))
    forged = json.dumps({**sent, "signature": b64encode(bare).decode()}).encode()
    assert "its signature is not that of the key" in server.refused(forged)
    assert server.effect() is Effect.DENY


def test_a_program_that_does_not_ask_follows_what_the_server_keeps(tmp_path: Path) -> None:
    command = Server(tmp_path)
    assert command.effect() is Effect.DENY
    server = Server(tmp_path)
    server.policies.accept(signed(ALLOW))
    assert command.effect() is Effect.ALLOW
    server.policies.accept(signed(ALLOW, issued_at=NOW + timedelta(seconds=1), expires_at=NOW + 3 * DAY))
    assert command.effect() is Effect.ALLOW
    command.clock.advance((2 * DAY).total_seconds())
    assert command.effect() is Effect.ALLOW, "the first one has expired"
    server.policies.accept(signed(DENY, version=8, expires_at=NOW + 3 * DAY))
    assert command.effect() is Effect.DENY
    assert command.version == 8


@pytest.mark.parametrize("kept", [b"", signed(DENY, key=OTHER_KEY, version=9), signed(ALLOW, version=6)])
def test_a_kept_policy_that_is_not_good_or_older_changes_nothing_while_a_program_runs(
    tmp_path: Path, kept: bytes
) -> None:
    command = Server(tmp_path)
    Server(tmp_path).policies.accept(signed(DENY))
    assert command.version == 7
    command.path.write_bytes(kept)
    assert command.version == 7
    assert command.effect() is Effect.DENY


def test_nothing_is_read_again_while_nothing_changed(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.policies.load() is server.policies.load()
    server.policies.accept(signed(ALLOW))
    assert server.policies.load() is server.policies.load()
