"""``python -m bench.hub kill``: users call, while service, database and proxy are killed at random.

Callers reach ``configurable-http-proxy``, as a JupyterHub starts it, and that one address of all replicas. What is
killed is started anew at once, as systemd or Kubernetes do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tornado.httpclient import AsyncHTTPClient

from jupyter_agentbox.storage.audit_log import SqlAuditLog
from tests.ports import kept_port
from tests.postgresql import PostgreSQL

from .hub_clients import Approver, Told, call
from .hub_service import PREFIX, WAIT, Address, Place, Service

ROOT = Path(__file__).parents[1]
#: What is killed, and how often in comparison.
VICTIMS = {"service": 5, "database at once": 2, "database's first process": 2, "proxy": 3}
#: What a caller is told of a call that never began.
NEVER_RAN = ("did not run", "has not run", "nothing ran")


_QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Proxy(Place):
    """``configurable-http-proxy`` in a process that can be killed.

    Parameters
    ----------
    target : str
        Where it leads to.
    """

    def __init__(self, target: str) -> None:
        found = shutil.which("configurable-http-proxy", path=f"{ROOT / 'node_modules' / '.bin'}:{os.environ['PATH']}")
        if found is None:
            raise FileNotFoundError("`configurable-http-proxy` is not installed: `make install`")
        self._kept = ExitStack()
        self._port, self._api = (self._kept.enter_context(kept_port()) for _ in range(2))
        self._command = [found, "--ip=127.0.0.1", f"--port={self._port}", "--api-ip=127.0.0.1"]
        self._command += [f"--api-port={self._api}", f"--default-target={target}", "--log-level=error"]
        super().__init__(f"http://127.0.0.1:{self._port}{PREFIX}")
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it."""
        token = {"CONFIGPROXY_AUTH_TOKEN": "bench"}
        self.process = subprocess.Popen(self._command, env=os.environ | token, **_QUIET)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def end(self) -> None:
        """End it for good."""
        self.kill()
        self._kept.close()


class Supervisor:
    """Starts anew what has ended, as systemd or Kubernetes do."""

    def __init__(self, replicas: Sequence[Service], proxy: Proxy) -> None:
        self._replicas = replicas
        self._proxy = proxy
        self.starts: Counter[str] = Counter()

    async def run(self) -> None:
        """Look again and again."""
        while True:
            for number, replica in enumerate(self._replicas):
                if replica.process is None or replica.process.poll() is not None:
                    replica.launch("--standby", "--HubService.claim_timeout=10")
                    self.starts[f"replica {number}"] += 1
            if self._proxy.process is None or self._proxy.process.poll() is not None:
                self._proxy.launch()
                self.starts["proxy"] += 1
            await asyncio.sleep(0.1)


class Killer:
    """Kills one part after another, by chance.

    Parameters
    ----------
    replicas, proxy, database
        The parts.
    chance : random.Random
        Chooses.
    """

    def __init__(self, replicas: Sequence[Service], proxy: Proxy, database: PostgreSQL, chance: random.Random) -> None:
        self._replicas, self._proxy, self._database = replicas, proxy, database
        self._chance = chance
        self.killed: Counter[str] = Counter()

    async def kill(self) -> None:
        """Kill something; a database is back when this returns."""
        (victim,) = self._chance.choices(list(VICTIMS), list(VICTIMS.values()))
        match victim:
            case "service":
                asked = await asyncio.gather(*(one.ask("health/ready") for one in self._replicas))
                ready = [one for one, answer in zip(self._replicas, asked, strict=True) if answer.code == 200]
                is_standby = not ready or self._chance.random() < 0.1
                self._chance.choice(self._replicas if is_standby else ready).kill()
            case "proxy":
                self._proxy.kill()
            case "database at once":
                await asyncio.to_thread(self._database.stop, "immediate")
                await self._start_database()
            case _:
                os.kill(self._database.pid, signal.SIGKILL)
                await self._start_database()
        self.killed[victim] += 1

    async def _start_database(self) -> None:
        async with asyncio.timeout(WAIT):
            while True:
                await asyncio.sleep(self._chance.random())
                try:
                    await asyncio.to_thread(self._database.start)
                except subprocess.CalledProcessError:  # a process of the one that was killed still ends
                    continue
                return


class Users:
    """Users who call all the time, and what they were told."""

    def __init__(self, service: Place, count: int, chance: random.Random) -> None:
        self.told: dict[str, Told] = {}
        self.ended = asyncio.Event()
        self._service = service
        self._chance = chance
        self._number = 0
        self.tasks = [asyncio.create_task(self._call(f"user{one}")) for one in range(count)]

    async def _call(self, name: str) -> None:
        while not self.ended.is_set():
            self._number += 1
            id = f"{name}-{self._number}"
            tool = self._chance.choice(("allowed", "asked", "asked"))
            self.told[id] = Told(state="waits")
            self.told[id] = await call(self._service, name, tool, id)
            was_there = self.told[id].state in ("succeeded", "failed")
            await asyncio.sleep(self._chance.random() * (0.2 if was_there else 2))


async def kill(arguments: argparse.Namespace) -> int:
    """Kill parts while users call and an approver allows; say what was lost or ran twice."""
    AsyncHTTPClient.configure(None, max_clients=5000)
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        database = PostgreSQL()
        database.start()
        url = database.make_database()
        replicas = []
        for number in range(arguments.replicas):
            (Path(directory) / str(number)).mkdir()
            replicas.append(Service(Path(directory) / str(number), url, runs=Path(directory) / "runs"))
        address = Address(replicas)
        await address.open()
        proxy = Proxy(address.origin)
        supervisor = Supervisor(replicas, proxy)
        supervising = asyncio.create_task(supervisor.run())
        killer = Killer(replicas, proxy, database, chance)
        try:
            users = await _series(arguments, proxy, killer, chance)
            print(f"{sum(killer.killed.values())} kills: {dict(killer.killed)}; starts: {dict(supervisor.starts)}")
            return await _problems(proxy, replicas[0], users)
        finally:
            supervising.cancel()
            proxy.end()
            await address.aclose()
            for replica in replicas:
                replica.end()
            for number in range(arguments.replicas):
                _print_odd_lines(Path(directory) / str(number) / "log")
            database.stop()
            database.remove()


async def _series(arguments: argparse.Namespace, proxy: Proxy, killer: Killer, chance: random.Random) -> Users:
    async with asyncio.timeout(WAIT):
        while (await proxy.ask("health/ready")).code != 200:
            await asyncio.sleep(0.2)
    users, approver, works = Users(proxy, arguments.users, chance), Approver(proxy), asyncio.Event()
    until = time.monotonic() + 60 * arguments.minutes

    async def approve() -> None:
        while not users.ended.is_set():
            if await approver.allow_all():
                works.set()
            await asyncio.sleep(chance.random() / 5)

    approving = asyncio.create_task(approve())
    for number in range(arguments.kills):
        works.clear()
        async with asyncio.timeout(WAIT):
            await works.wait()  # else most kills would come before anybody was asked
        if time.monotonic() > until:
            break
        await asyncio.sleep(chance.random() * arguments.pause)
        await killer.kill()
        if number % 10 == 9:
            print(f"  {number + 1} kills, {len(users.told)} calls", flush=True)
    users.ended.set()
    await approving
    while not all(one.done() for one in users.tasks):  # what still waits is answered
        await approver.allow_all()
        await asyncio.wait(users.tasks, timeout=0.5)
    for one in users.tasks:
        one.result()
    return users


async def _problems(proxy: Proxy, service: Service, users: Users) -> int:
    approver = Approver(proxy)
    await approver.log_in()
    ran = Counter(service.runs.read_text().split())
    record: list[Any] = [json.loads(line) for line in (await approver.get("api/audit")).body.splitlines()]
    log = SqlAuditLog(service.database_url)
    broken = (await log.verify()).broken
    await log.aclose()
    entries: dict[str, list[Any]] = {}
    for one in record:
        entries.setdefault(one["call"]["arguments"]["id"], []).append(one)
    told = users.told
    never = [id for id, one in told.items() if any(words in one.text for words in NEVER_RAN)]
    approved = {id for id, rows in entries.items() if any(one["status"] == "approved" for one in rows)}
    problems = {
        "ran twice": [id for id, times in ran.items() if times > 1],
        "has two records": [id for id, rows in entries.items() if len(rows) > 1],
        "succeeded for its caller, and did not run": [
            id for id, one in told.items() if one.state == "succeeded" and id not in ran
        ],
        "ran, and its caller was told that it did not": [id for id in never if id in ran],
        "ran, and the record does not say that it was approved": [id for id in ran if id not in approved],
        "waited, and has no record": [id for id, one in told.items() if one.event and id not in entries],
        "has no answer": [id for id, one in told.items() if one.state in ("no answer", "waits")],
        "still waits in the record": [
            id for id, rows in entries.items() if any(one["status"] == "pending" for one in rows)
        ],
        "still runs in the record": [
            id for id, rows in entries.items() if any((one["outcome"] or {}).get("state") == "running" for one in rows)
        ],
    }
    print(f"{len(told)} calls of {len(users.tasks)} users: {dict(Counter(one.state for one in told.values()))}")
    print(f"{sum(ran.values())} ran; {len(record)} records; the chain {'is broken' if broken else 'holds'}")
    for text, times in Counter(_without_names(one) for one in told.values() if one.state != "succeeded").most_common():
        print(f"  {times} callers were told: {text}")
    for problem, ids in problems.items():
        print(f"  {problem}: {len(ids)} {' '.join(ids[:5])}")
        for id in ids[:3]:
            print(f"    {told.get(id)} {json.dumps(entries.get(id))}")
    return 1 if broken or any(problems.values()) else 0


def _without_names(told: Told) -> str:
    words = ("…" if re.search(r"\d", word) and not word[:3].isdigit() else word for word in told.text.split())
    return f"({told.state}) {' '.join(words):.160}"


def _print_odd_lines(log: Path) -> None:
    """Print what the service logged that is no JSON, and its tracebacks: each is a defect."""
    odd = [line for line in log.read_text().splitlines() if "Traceback" in line or not line.startswith("{")]
    for line, times in Counter(line[:2000] for line in odd).most_common(10):
        print(f"  the log has {times} times: {line}")
