"""The trail of a server whose site changes what it wants recorded, and where."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.composition import Settings, build
from jupyter_agentbox.core.audit_trail import AuditSettings, check_trail
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.site_policy import SiteAudit, SitePolicy
from jupyter_agentbox.exceptions import AuditError, ToolCallRejectedError
from jupyter_agentbox.services.audit.site_trail import SiteTrail
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import FakeAnnouncer, FakeTools
from tests.collectors import collecting

ALLOW = Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),))
BROKEN = RuleBook(
    rules=(Rule(server="*", tool="*", effect=Effect.DENY, layer=Layer.SITE, reason="broken"),),
    site=SitePolicy.closed("agentbox_rules.json"),
)


class Rules:
    """The files of a site, as they are read now."""

    def __init__(self, book: RuleBook) -> None:
        self.book = book

    def load(self) -> RuleBook:
        return self.book


class Server:
    """A server without places for records of its own."""

    def __init__(self, directory: Path, rules: Rules) -> None:
        async def find(call: ToolCall, report: Any) -> Any:
            return {}

        self.tools = FakeTools({"shop.find": find})
        self.box = build(
            Settings(
                mcp_config_path=(),
                database_url=sqlite_url(str(directory / "approvals.sqlite")),
                audit=AuditSettings(spool=str(directory / "spool"), pause=0.01),
            ),
            announcer=FakeAnnouncer(),
            own_tools={"shop": self.tools},
            policy=ALLOW,
            rules=rules,
        )

    async def __aenter__(self) -> Server:
        await self.box.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.box.aclose()

    async def call(self) -> None:
        call = ToolCall(server="shop", tool="find", arguments={})
        try:
            await self.box.calls.run(call, on_waiting=lambda _: None, on_running=lambda _: None)
        finally:
            await self.box.approvals.recorded()


def wanting(url: str) -> RuleBook:
    return RuleBook(site=SitePolicy(audit=SiteAudit(sinks=(url,))))


async def test_a_site_whose_broken_file_is_mended_gets_its_records_without_a_restart(tmp_path: Path) -> None:
    rules = Rules(BROKEN)
    async with asyncio.timeout(60), collecting() as collector, Server(tmp_path, rules) as server:
        with pytest.raises(ToolCallRejectedError):
            await server.call()
        rules.book = wanting(collector.url)
        await server.call()
        await collector.has("ended")
        assert [one for one in collector.events if one != "configured"] == ["started", "decided", "ended"]


def test_what_is_about_to_run_looks_at_the_site_and_what_has_run_only_after_a_while() -> None:
    looks: list[float] = []
    seconds = [0.0]

    def look() -> SitePolicy:
        looks.append(seconds[0])
        return SitePolicy()

    trail = SiteTrail(AuditSettings(), site=look, make=lambda _: None, clock=lambda: seconds[0])
    for now in (1.0, 1.01, 1.02):
        seconds[0] = now
        trail.for_running()
        trail.current()
    seconds[0] = 1.2
    trail.current()
    trail.current()
    assert looks == [0.0, 1.0, 1.01, 1.02, 1.2]


async def test_a_file_that_breaks_takes_no_place_away(tmp_path: Path) -> None:
    async with asyncio.timeout(60), collecting() as collector:
        rules = Rules(wanting(collector.url))
        async with Server(tmp_path, rules) as server:
            rules.book = BROKEN
            with pytest.raises(ToolCallRejectedError):
                await server.call()
        assert sorted(collector.events) == ["configured", "decided", "started", "stopped"]  # the rules changed, too


async def test_another_place_begins_a_chain_and_the_one_before_is_ended_in_order(tmp_path: Path) -> None:
    async with asyncio.timeout(60), collecting() as first, collecting() as second:
        rules = Rules(wanting(first.url))
        async with Server(tmp_path, rules) as server:
            await server.call()
            rules.book = wanting(second.url)
            await server.call()
            await first.has("stopped")
        (chain,), _ = check_trail(first.lines)
        (other,), _ = check_trail(second.lines)
    assert (chain.is_whole, chain.is_ended, chain.records) == (True, True, 4)
    assert (other.is_whole, other.is_ended, other.records) == (True, True, 4)
    assert chain.id != other.id


async def test_nothing_runs_while_a_site_names_a_place_that_is_none(tmp_path: Path) -> None:
    rules = Rules(RuleBook())
    async with asyncio.timeout(60), Server(tmp_path, rules) as server:
        await server.call()
        rules.book = wanting("pigeon:coop")
        with pytest.raises(AuditError, match="pigeon"):
            await server.call()
        assert len(server.tools.calls) == 1
        assert "pigeon" in server.box.trail.problem()
        rules.book = RuleBook()
        await server.call()
        assert (server.box.trail.problem(), server.box.trail.waiting) == ("", ())
