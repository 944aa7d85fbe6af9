"""Sandboxed kernels reach the domains that they may, with the programs that people use, and no others."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from tornado.web import HTTPError

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.headless.sandbox_config import read_sandbox_config
from jupyter_agentbox.sandbox.server.network import proxy_variables
from jupyter_agentbox.sandbox.server.probes import select_level
from jupyter_agentbox.sandbox.server.settings import Domains
from tests.processes_alive import children, running, survivors

from .conftest import TIMEOUT, Start, can_reach, manager_of
from .sites import serving

NETWORKED = (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC)


@pytest.fixture(params=NETWORKED, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> Isolation:
    """Every level with a network of its own that this machine can reach."""
    can_reach(request.param)
    found: Isolation = request.param
    return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """A web site on this machine: a page, a package, a repository."""
    root = tmp_path / "site"
    (root / "wheels").mkdir(parents=True)
    (root / "page").write_text("hello from outside")
    with zipfile.ZipFile(root / "wheels" / "parcel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("parcel.py", "content = 'sent'\n")
        wheel.writestr("parcel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
        wheel.writestr("parcel-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("parcel-1.0.dist-info/RECORD", "")
    if shutil.which("git"):
        for command in (
            ["init", "--quiet", "--bare", "."],
            ["update-server-info"],
        ):
            (root / "repository.git").mkdir(exist_ok=True)
            subprocess.run(["git", *command], cwd=root / "repository.git", check=True)
    with serving(root) as server:
        yield server


def at(site: ThreadingHTTPServer) -> str:
    return f"localhost:{site.server_port}"


CLIENTS = {
    "urllib": "import urllib.request; print(urllib.request.urlopen({url!r}).read().decode())",
    "requests": "import requests; print(requests.get({url!r}).text)",
    "httpx": "import httpx; print(httpx.get({url!r}).text)",
    "curl": "!curl -sS {url}",
    "curl, by a tunnel": "!curl -sSp {url}",
}


async def test_programs_reach_an_allowed_domain_without_further_settings(
    start: Start, site: ThreadingHTTPServer
) -> None:
    async with start(private_domains=[at(site)]) as kernel:
        for code in CLIENTS.values():
            if "curl" not in code or shutil.which("curl"):
                assert await kernel.run(code.format(url=f"http://{at(site)}/page")) == "hello from outside"


async def test_proxy_writes_no_byte_code_into_the_package(start: Start, site: ThreadingHTTPServer) -> None:
    async with start(private_domains=[at(site)]):
        commands = [process.cmdline() for process in psutil.Process().children(recursive=True)]

    proxies = [command for command in commands if any("egress.main" in part for part in command)]
    assert proxies
    assert all("-B" in command for command in proxies)


async def test_other_domains_are_refused_by_name(start: Start, site: ThreadingHTTPServer) -> None:
    async with start(private_domains=[at(site)]) as kernel:
        for url in (f"http://127.0.0.2:{site.server_port}/page", "https://other.example/", "http://other.example/"):
            for name in ("urllib", "requests", "httpx"):
                said = await kernel.run(CLIENTS[name].format(url=url))
                assert url.split("/")[2].partition(":")[0] in said
                assert "not an allowed domain" in said


async def test_pip_installs_from_an_allowed_domain(start: Start, site: ThreadingHTTPServer) -> None:
    options = f"--quiet --no-index --find-links http://{at(site)}/wheels/ --target packages"
    async with start(private_domains=[at(site)]) as kernel:
        await kernel.run(f"%pip install {options} parcel")
        assert (
            await kernel.run("import sys; sys.path.append('packages'); import parcel; print(parcel.content)") == "sent"
        )


async def test_git_clones_from_an_allowed_domain(start: Start, site: ThreadingHTTPServer) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    async with start(private_domains=[at(site)]) as kernel:
        said = await kernel.run(f"!git clone --quiet http://{at(site)}/repository.git && ls -a repository")

    assert ".git" in said.split()


async def test_much_passes_in_both_directions(start: Start, site: ThreadingHTTPServer) -> None:
    code = "import urllib.request as u; sent = bytes(range(256)) * 20000; print(u.urlopen({!r}, sent).read() == sent)"
    async with start(private_domains=[at(site)]) as kernel:
        assert await kernel.run(code.format(f"http://{at(site)}/")) == "True"


async def test_what_listens_inside_is_reached_directly(start: Start, site: ThreadingHTTPServer) -> None:
    code = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/")
except urllib.error.HTTPError as error:
    print(error.code)
"""
    async with start(private_domains=[at(site)]) as kernel:
        assert (await kernel.run(code)).endswith("501")


async def test_interrupt_and_restart_leave_the_network_as_it_was(start: Start, site: ThreadingHTTPServer) -> None:
    code = CLIENTS["urllib"].format(url=f"http://{at(site)}/page")
    async with start(private_domains=[at(site)]) as kernel:
        cell = await kernel.begin("import time; print('go'); time.sleep(60)")
        await kernel.manager.interrupt_kernel()
        assert await cell == "KeyboardInterrupt"
        assert await kernel.run(code) == "hello from outside"
        await kernel.restart()
        assert await kernel.run(code) == "hello from outside"


async def test_kernel_has_no_child_that_it_did_not_start(start: Start, site: ThreadingHTTPServer) -> None:
    async with start(private_domains=[at(site)]) as kernel:
        said = await kernel.run("import os\ntry: os.wait()\nexcept ChildProcessError: print('none')")

    assert said == "none"


@pytest.mark.parametrize("end", ["shutdown", "kill", "crash"])
async def test_proxy_ends_with_the_sandbox(start: Start, site: ThreadingHTTPServer, end: str) -> None:
    before = children()
    async with start(private_domains=[at(site)]) as kernel:
        started = children(beside=before)
        assert running("egress.main", started)
        if end == "crash":
            kernel.client.execute("import os; os._exit(1)")
            assert not await asyncio.to_thread(survivors, started, TIMEOUT)
        else:
            await kernel.manager.shutdown_kernel(now=end == "kill")
            assert not await asyncio.to_thread(survivors, started, TIMEOUT)


OWNER = """
import asyncio, sys
sys.path[:0] = {path!r}
from pathlib import Path
from tests.sandbox.conftest import manager_of
from jupyter_agentbox.core.isolation import Isolation

async def main():
    manager = manager_of(Isolation({level!r}), Path({places!r}), allowed_domains=["example.com"])
    await manager.start_kernel(cwd={work!r})
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_killing_the_server_ends_the_proxy(level: Isolation, work: Path, places: Path) -> None:
    code = OWNER.format(path=[str(Path.cwd())], level=level.value, places=str(places), work=str(work))
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    async with asyncio.timeout(TIMEOUT):
        assert (await owner.stdout.readline()).strip() == b"ready"
    all_ = children(owner.pid)
    assert running("egress.main", all_)
    owner.kill()
    await owner.wait()

    assert not await asyncio.to_thread(survivors, all_, TIMEOUT)


class Log(logging.Handler):
    """Keeps what is logged until a line has a certain word."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []
        self.last = last
        self.done = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))
        if self.last in record.getMessage():
            self.done.set()


async def test_refused_domain_is_logged_once(
    start: Start, site: ThreadingHTTPServer, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log("last.example")
    async with start(private_domains=[at(site)]) as kernel:
        logger = kernel.manager.provisioner.log  # type: ignore[union-attr]
        caplog.set_level("INFO", logger=logger.name)
        logger.addHandler(log)
        try:
            for name in ("first.example", "first.example", "last.example"):
                await kernel.run(CLIENTS["requests"].format(url=f"http://user:secret@{name}/?key=secret"))
            assert await asyncio.to_thread(log.done.wait, TIMEOUT)
        finally:
            logger.removeHandler(log)

    assert [level for level, text in log.lines if "first.example" in text] == ["INFO"]
    assert "secret" not in str(log.lines)


async def test_proxy_gets_no_secret_of_the_server(
    start: Start, site: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    before = children()
    async with start(private_domains=[at(site)]):
        proxies = running("egress.main", children(beside=before))
        assert ["JUPYTERHUB_API_TOKEN" in one.environ() for one in proxies] == [False]


def test_programs_are_led_to_the_proxy_but_not_for_what_is_inside() -> None:
    found = proxy_variables(Domains(allowed=("example.com",)))

    assert found["HTTPS_PROXY"] == found["https_proxy"] == found["ALL_PROXY"] == "http://127.0.0.1:3128"
    assert found["NO_PROXY"] == found["no_proxy"] == "localhost,127.0.0.1,::1"
    assert proxy_variables(Domains(private=("localhost:11434",)))["NO_PROXY"] == "127.0.0.1,::1"
    assert proxy_variables(Domains()) == {}


async def test_without_a_network_of_its_own_no_domain_is_allowed_and_no_kernel_started(
    places: Path, work: Path
) -> None:
    with pytest.raises(SandboxRefusedError, match="allowed_domains"):
        select_level([Isolation.LANDLOCK], network=True)

    for domains in ({"allowed_domains": ["example.com"]}, {"private_domains": ["localhost:1"]}):
        with pytest.raises(HTTPError) as refusal:
            await manager_of(Isolation.LANDLOCK, places, **domains).start_kernel(cwd=str(work))
        assert "allowed_domains" in str(refusal.value.log_message)


async def test_rule_that_cannot_be_meant_is_refused_before_a_kernel_starts(places: Path, work: Path) -> None:
    with pytest.raises(HTTPError) as refusal:
        await manager_of(Isolation.BUBBLEWRAP, places, allowed_domains=["*.com"]).start_kernel(cwd=str(work))

    assert "`*.com` is too wide" in str(refusal.value.log_message)


def test_domains_can_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "box.json"
    file.write_text('{"allowed_domains": ["*.example.com"], "private_domains": ["localhost:11434"]}')

    assert read_sandbox_config(file, work_dir=None) == SandboxSettings(
        allowed_domains=("*.example.com",),
        private_domains=("localhost:11434",),
        read_only=(str(file),),  # no kernel may change what the next one is allowed
    )
