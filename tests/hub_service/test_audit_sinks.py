"""The service sends its record to audit sinks: all of it, in a chain, whatever happens to it or to them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, Chain, check_trail
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.hub.app import main
from jupyter_agentbox.hub.audit_sinks import notes_of_sinks, sinks_of
from jupyter_agentbox.hub.composition import Settings, build
from jupyter_agentbox.hub.policy_file import PolicyFile
from jupyter_agentbox.storage.retention import RetentionLimits
from tests.collectors import Collector, collecting
from tests.queue_sink import install_queue_sink
from tests.syslog_receivers import SyslogReceiver, receiving_datagrams, tcp_place

from .service import TIMEOUT, Service, a_policy, ask, running_service
from .test_reports import database_url, lines_of, report
from .test_service import ALLOW, DENY, call, waiting

__all__ = ["database_url"]

SECRET = "hunter2hunter2"


def audit(*addresses: str, **more: Any) -> AuditSettings:
    """Return settings with these audit sinks, which are tried again without delay, and waited for at the end."""
    return AuditSettings(sinks=addresses, pause=0.01, last_patience=TIMEOUT, **more)


def own_chain(lines: Sequence[str]) -> Chain:
    """Return the service's chain, after checking that all chains are whole."""
    chains, strange = check_trail(lines)
    assert strange == 0
    assert [chain for chain in chains if not chain.is_whole] == []
    first = next(record for record in map(json.loads, lines) if record["event"] == "started")
    return next(chain for chain in chains if chain.id == first["chain"])


async def metrics(service: Service) -> dict[str, float]:
    """Return the metrics of audit sinks."""
    text = (await service.get("metrics", token="eve")).body.decode()
    found = re.findall(r"^agentbox_hub_audit_(.*?(?<!_created)(?:\{.*\})?) ([\d.e+-]+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found if "_created" not in name}


async def call_once(service: Service, sql: str = "select 1") -> None:
    """Have ada call a tool that needs nobody's approval."""
    async with service.tools_of("ada") as tools:
        assert not (await tools.call_tool(call(sql=sql))).is_error


async def ask_and_allow(service: Service, **arguments: Any) -> None:
    """Have ada call a tool, and bob allow it."""
    async with service.tools_of("ada") as tools:
        calling = asyncio.create_task(tools.call_tool(replace(call(), arguments={"sql": "select 1", **arguments})))
        await service.decide(await waiting(service, "bob"), "bob", reason="looks right")
        await calling


async def test_all_that_happens_to_a_call_is_sent_in_a_chain_with_who_decided_and_no_secret(
    tmp_path: Path, database_url: str
) -> None:
    place, address = tcp_place()
    receiver, policy = SyslogReceiver(place), a_policy(ask("query", group="data-stewards"), DENY)
    with place:
        async with asyncio.timeout(TIMEOUT), receiver.listening():
            async with running_service(tmp_path, policy, database_url=database_url, audit=audit(address)) as service:
                await ask_and_allow(service, password=SECRET)
                async with service.tools_of("eve") as tools:
                    await tools.call_tool(call("drop"))
                await receiver.has("decided", 3)
            await receiver.has("stopped")

    records = receiver.records
    told = [(one["event"], one["user"], one.get("status"), (one.get("outcome") or {}).get("state")) for one in records]
    assert told == [
        ("started", "", None, None),
        ("asked", "ada", "pending", None),
        ("decided", "ada", "approved", None),
        ("decided", "ada", "approved", "running"),
        ("ended", "ada", "approved", "succeeded"),
        ("decided", "eve", "rejected", None),
        ("stopped", "", None, None),
    ]
    decision = records[2]["decision"]
    assert (decision["reviewer"], decision["via"], decision["reason"]) == ("bob", "browser", "looks right")
    assert records[1]["approvers"]["group"] == "data-stewards"
    assert records[1]["arguments"]["sql"] == "select 1"
    assert SECRET not in "".join(receiver.lines)
    assert "service-secret" not in "".join(receiver.lines)
    assert receiver.programs == {"jupyter-agentbox-hub"}
    chain = own_chain(receiver.lines)
    assert (chain.records, chain.last, chain.is_ended) == (7, 7, True)


async def test_each_approval_of_several_and_each_change_of_the_policy_is_sent(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, a_policy(ask(group="data-stewards", count=2)), audit=audit(sink.url)) as service,
    ):
        async with service.tools_of("ada") as tools:
            calling = asyncio.create_task(tools.call_tool(call()))
            for approver in ("bob", "cleo"):
                await service.decide(await waiting(service, approver), approver)
            await calling
        (tmp_path / "policy.json").write_text(json.dumps(a_policy(ALLOW)))
        await service.box.policy.look()
        records = await sink.has("configured")
    votes = [[vote["reviewer"] for vote in one["votes"]] for one in records if one["event"] == "changed"]
    decided = next(one for one in records if one["event"] == "decided")
    assert votes == [["bob"]]
    assert (decided["decision"]["reviewer"], [vote["reviewer"] for vote in decided["votes"]]) == ("cleo", ["bob"])
    assert next(one for one in records if one["event"] == "configured")["user"] == ""


async def test_what_users_servers_report_is_sent_as_they_sealed_it_and_notes_are_the_services(
    tmp_path: Path, database_url: str
) -> None:
    lines = lines_of("ada", 5)
    async with (
        asyncio.timeout(TIMEOUT),
        receiving_datagrams() as (receiver, address),
        running_service(tmp_path, a_policy(), database_url=database_url, audit=audit(address)) as service,
    ):
        assert (await report(service, "ada", lines[:2]))[0] == 200
        assert (await report(service, "ada", [lines[1], lines[4]]))[0] == 200
        (note,) = [one for one in await receiver.has("missing") if one["event"] == "missing"]
        assert (await report(service, "ada", lines))[0] == 200
        await receiver.has("filled")
    assert (note["user"], note["reported_chain"], note["first"], note["last"]) == ("ada", "c1", 3, 4)
    reported = [line for line in receiver.lines if '"chain":"c1"' in line]
    assert sorted(reported) == sorted(line.decode() for line in lines)
    assert own_chain(receiver.lines).is_whole


async def test_a_user_can_report_no_record_in_the_chain_of_the_service(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, a_policy(), audit=audit(sink.url)) as service,
    ):
        (started,) = await sink.has("started")
        chain = started["chain"]
        assert chain.startswith("service/")
        for forged in (chain, "service/other"):
            assert (await report(service, "eve", lines_of("eve", 1, chain=forged)))[0] != 200
        assert (await report(service, "eve", lines_of("eve", 1)))[0] == 200
        await sink.has("ended")
    assert [one["chain"] for one in sink.records if one["user"] == "eve"] == ["c1"]


async def test_calls_run_while_a_sink_is_away_and_all_records_arrive_when_it_is_back(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, address = tcp_place()
    receiver = SyslogReceiver(place)
    with place:
        async with (
            asyncio.timeout(TIMEOUT),
            collecting() as other,
            running_service(
                tmp_path, a_policy(ALLOW), database_url=database_url, audit=audit(address, f"{other.url}?key=s3cr3t")
            ) as service,
        ):
            for _ in range(3):
                await call_once(service)
            await other.has("ended", 3)
            while not (found := await metrics(service)).get('failures_total{sink="1"}'):
                pass
            ready = await service.json("health/ready")
            assert (ready["status"], ready["audit_sinks_down"]) == ("ok", [1])
            assert found['lag_records{sink="1"}'] == 7.0
            assert found['lag_seconds{sink="1"}'] > 0
            async with receiver.listening():
                await receiver.has("ended", 3)
                while (found := await metrics(service))['lag_records{sink="1"}']:
                    pass
                assert found['records_total{result="delivered",sink="1"}'] == 7.0
                assert found['lag_seconds{sink="1"}'] == 0.0
                assert (await service.json("health/ready"))["audit_sinks_down"] == []
    assert other.lines[: len(receiver.lines)] == receiver.lines
    said = [one.getMessage() for one in caplog.records if address.removeprefix("syslog+tcp://") in one.getMessage()]
    assert len(said) == 2
    assert "does not accept audit records" in said[0]
    assert said[1].endswith("accepts audit records again")
    # The receiver's own log, which is the test's, may have the address.
    ours = [one for one in caplog.records if one.name.startswith("jupyter_agentbox")]
    assert not any("s3cr3t" in one.getMessage() for one in ours)


async def test_records_wait_in_the_database_for_the_next_service_in_the_same_chain(
    tmp_path: Path, database_url: str
) -> None:
    place, address = tcp_place()
    receiver = SyslogReceiver(place)
    settings = {"database_url": database_url, "audit": audit(address)}
    with place:
        async with asyncio.timeout(TIMEOUT):
            for _ in range(2):
                async with running_service(tmp_path, a_policy(ALLOW), **settings) as service:
                    await call_once(service)
            async with receiver.listening(), running_service(tmp_path, a_policy(ALLOW), **settings):
                await receiver.has("ended", 2)
    events = [record["event"] for record in receiver.records]
    assert events == [*["started", "decided", "ended", "stopped"] * 2, "started", "stopped"]
    chain = own_chain(receiver.lines)
    assert (chain.records, chain.last, chain.is_ended) == (10, 10, True)


async def test_what_a_receiver_did_not_read_before_it_broke_off_is_sent_again(tmp_path: Path) -> None:
    place, address = tcp_place()
    receiver = SyslogReceiver(place, breaks_after=[2, 1, 0])
    with place:
        async with (
            asyncio.timeout(TIMEOUT),
            running_service(tmp_path, a_policy(ALLOW), audit=audit(address)) as service,
        ):
            for _ in range(3):
                await call_once(service)
            async with receiver.listening():
                await receiver.has("ended", 3)
    assert len(receiver.lines) > 7  # how many are in a batch depends on when it is tried
    assert own_chain(receiver.lines).records == 7


async def test_line_breaks_in_what_a_user_says_are_in_no_message(tmp_path: Path) -> None:
    hostile = "select 1\n<110>1 - - - - - - forged\r\n\0\x1b[2J\x85\u2028"
    (first,) = lines_of("ada", 1, tool=hostile)
    first = first.replace(b'","', b'",\r\t"', 1)
    async with (
        asyncio.timeout(TIMEOUT),
        receiving_datagrams() as (receiver, address),
        running_service(tmp_path, a_policy(ALLOW), audit=audit(address)) as service,
    ):
        assert (await report(service, "ada", [first]))[0] == 200
        await call_once(service, sql=hostile)
        await receiver.has("ended", 2)
    assert not any(byte < 0x20 or byte > 0x7E for body in receiver.bodies for byte in body)
    assert {one["arguments"]["sql"] for one in receiver.records if "arguments" in one} == {hostile}
    assert own_chain(receiver.lines).is_whole


async def test_a_record_that_a_sink_refuses_is_kept_in_the_database_and_those_behind_it_are_sent(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Picky(Collector):
        async def take(self, body: bytes, headers: Any) -> None:
            self.status = 400 if b'"asked_by":"eve"' in body else 200
            await super().take(body, headers)

    async with asyncio.timeout(TIMEOUT), collecting(Picky()) as sink:
        settings = {"database_url": database_url, "audit": audit(sink.url)}
        async with running_service(tmp_path, a_policy(DENY), **settings) as service:
            for user in ("ada", "eve", "bob"):
                async with service.tools_of(user) as tools:
                    await tools.call_tool(call("drop"))
            await sink.has("decided", 2)
            while (found := await metrics(service))['lag_records{sink="1"}']:
                pass
            assert found['records_total{result="rejected",sink="1"}'] == 1.0
    assert [one["user"] for one in sink.records if one["event"] == "decided"] == ["ada", "bob"]
    engine = create_engine(database_url)
    with engine.connect() as connection:
        ((line,),) = connection.execute(text("SELECT record FROM agentbox_outbox_refused")).all()
        (left,) = connection.execute(text("SELECT count(*) FROM agentbox_outbox")).one()
    engine.dispose()
    assert (json.loads(line)["user"], left) == ("eve", 0)
    assert own_chain([*sink.lines, bytes(line).decode()]).records == 5
    assert "agentbox_outbox_refused" in caplog.text


async def test_retention_removes_no_record_that_was_not_sent(tmp_path: Path, database_url: str) -> None:
    place, address = tcp_place()
    receiver = SyslogReceiver(place)
    with place:
        async with (
            asyncio.timeout(TIMEOUT),
            running_service(
                tmp_path,
                a_policy(),
                database_url=database_url,
                audit=audit(address),
                retention=RetentionLimits(days=0.0),
            ) as service,
        ):
            await report(service, "ada", lines_of("ada", 3))
            await service.box.reports.remove_old()
            rows = await service.get("api/reports?user=ada", token="dan")
            assert [json.loads(row)["record"] for row in rows.body.splitlines()][:3] == [None] * 3
            async with receiver.listening():
                records = await receiver.has("removed")
    assert [record["event"] for record in records].count("ended") == 3


async def test_while_the_database_cannot_be_written_no_record_is_sent_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.hub.forwarding._RETRY", 0.01)
    can_be_written = asyncio.Event()
    async with (
        asyncio.timeout(TIMEOUT),
        collecting() as sink,
        running_service(tmp_path, a_policy(ALLOW), audit=audit(sink.url)) as service,
    ):
        await sink.has("started")
        forwarder = service.box.forwarder
        assert forwarder is not None
        sent, errors = forwarder._reader.sent, [StorageError("database or disk is full") for _ in range(5)]

        async def fail_first(key: str, position: int) -> None:
            if errors:
                raise errors.pop()
            can_be_written.set()
            await sent(key, position)

        monkeypatch.setattr(forwarder._reader, "sent", fail_first)
        await call_once(service)
        await can_be_written.wait()
        while (await metrics(service))['lag_records{sink="1"}']:
            pass
    assert [record["event"] for record in sink.records] == ["started", "decided", "ended", "stopped"]


async def test_only_digests_of_arguments_are_sent_if_the_site_wants_no_more(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT), collecting() as sink:
        settings = audit(sink.url, arguments=ArgumentsKept.DIGEST)
        async with running_service(tmp_path, a_policy(ALLOW), audit=settings) as service:
            await call_once(service, sql="select 77")
            (decided, *_) = [one for one in await sink.has("ended") if one["event"] == "decided"]
    assert "arguments" not in decided
    assert "select 77" not in "".join(sink.lines)
    assert decided["call_digest"]


async def test_without_sinks_the_database_has_no_outbox(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT), running_service(tmp_path, a_policy()) as service:
        assert (await service.json("health/ready"))["audit_sinks_down"] == []
        engine = create_engine(f"sqlite:///{service.database}")
        with engine.connect() as connection:
            tables = connection.scalars(text("SELECT name FROM sqlite_master WHERE name LIKE 'agentbox_outbox%'")).all()
        engine.dispose()
    assert tables == []


@pytest.mark.parametrize(
    ("addresses", "message"),
    [
        (["stdout:", "ftp://log.example"], r"^entry 2 of `HubService.audit_sinks`: .*not the address of an audit sink"),
        (["https://log.example:port/"], r"^entry 1 of `HubService.audit_sinks`: "),
        (["stdout:", "stdout:"], r"^entry 2 of `HubService.audit_sinks`: this address is given twice"),
        (["file:///var/log/{user}.jsonl"], r"exist only on users' servers"),
        (
            ["agentbox+https://hub.example/services/agentbox/"],
            r"users' servers report to the service at such an address",
        ),
    ],
)
def test_an_address_that_is_none_is_refused_with_its_place(addresses: Sequence[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sinks_of(audit(*addresses))
    with pytest.raises(ValueError, match=message):
        build(_settings(audit(*addresses)), PolicyFile(path=Path("p")), {})


def _settings(of_audit: AuditSettings) -> Settings:
    return Settings(
        database_url="sqlite://",
        approval_timeout=1.0,
        most_calls=1,
        idle_timeout=1.0,
        retention=RetentionLimits(),
        audit=of_audit,
    )


def test_the_command_checks_the_sinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, config = tmp_path / "policy.json", tmp_path / "hub_config.py"
    policy.write_text('{"rules": []}')

    def check(*sinks: str) -> tuple[int, list[str], str]:
        config.write_text(f"c.HubService.audit_sinks = {list(sinks)}\n")
        code = main([f"--policy={policy}", f"--config={config}", "--check-config"])
        told = capsys.readouterr()
        return code, told.err.splitlines(), told.out.strip()

    code, (second, third), _ = check("stdout:", "ftp://log.example", "https://ada:s3cret@log.example:port/")
    assert code == 2
    told = (
        "jupyter agentbox hub: entry 2 of `HubService.audit_sinks`: `ftp://log.example` is not the address of an audit"
    )
    assert second.startswith(told)
    assert third.startswith("jupyter agentbox hub: entry 3 of `HubService.audit_sinks`: this is not the address of an")
    assert "agentbox+https:" not in second, "it names only what the service itself can use"
    assert "s3cret" not in third
    missing = f"note: entry 1 of `HubService.audit_sinks`: `{tmp_path}/none` does not exist"
    assert check(f"file://{tmp_path}/none/log") == (
        0,
        [missing],
        f"{policy}: 0 rules, 0 central servers, 1 audit sink; no errors, 1 note",
    )
    assert check("stdout:", "http://localhost/")[1] == []
    assert check("stdout:")[2].endswith(", 1 audit sink; nothing is wrong")


def test_addresses_at_which_others_could_read_the_record_are_noted() -> None:
    http, _, syslog = notes_of_sinks(audit("http://a:s3cret@log.example/", "otlp+http://log.example/", "syslog://log"))
    assert http == (
        "entry 1 of `HubService.audit_sinks`: records, and any token or password with them, go to `log.example`"
        " unencrypted; use `https` if it can receive that"
    )
    assert syslog.endswith("records go to `log` unencrypted; use `syslog+tls` if it can receive that")
    assert notes_of_sinks(audit("https://log.example/", "syslog+tls://log", "syslog://localhost")) == []


@pytest.mark.parametrize("scheme", ["file://", "FILE://"])
async def test_a_file_is_found_however_its_scheme_is_written(scheme: str, tmp_path: Path) -> None:
    (sink,) = sinks_of(audit(f"{scheme}{tmp_path}/log")).values()
    await sink.send([b"{}"])
    assert (tmp_path / "log").read_bytes() == b"{}\n"
    assert notes_of_sinks(audit(f"{scheme}{tmp_path}/log")) == []


def test_files_that_are_missing_are_noted(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    token.chmod(0o644)
    addresses = (f"file://{tmp_path}/log", f"file://{tmp_path}/none/log", f"syslog://{tmp_path}/socket", "stdout:")
    assert notes_of_sinks(audit(*addresses, token_file=str(token))) == [
        f"entry 2 of `HubService.audit_sinks`: `{tmp_path}/none` does not exist",
        f"entry 3 of `HubService.audit_sinks`: `{tmp_path}/socket` does not exist",
        f"`HubService.audit_token_file`: every user of this machine can read `{token}`: run `chmod o-r` on it",
    ]
    token.unlink()
    (note,) = notes_of_sinks(audit("stdout:", token_file=str(token)))
    assert note.endswith("cannot be read: No such file or directory")


async def test_the_sink_of_an_installed_package_gets_the_whole_record_also_what_was_made_while_it_was_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_queue_sink(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    directory = tmp_path / "queue"
    address = f"queue://{directory}/records"
    async with asyncio.timeout(TIMEOUT):
        async with running_service(tmp_path, a_policy(ALLOW), audit=audit(address)) as service:
            await call_once(service)
            while (await service.json("health/ready"))["audit_sinks_down"] != [1]:
                pass
            directory.mkdir()
            await call_once(service)
            while (await service.json("health/ready"))["audit_sinks_down"]:
                pass
    lines = (directory / "records").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["started", *2 * ["decided", "ended"], "stopped"]
    assert own_chain(lines).is_ended
