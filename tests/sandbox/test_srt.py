"""Kernels in sandboxes of Anthropic's sandbox runtime. What other tests show of every level holds for it too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tornado.web import HTTPError

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import select_level
from jupyter_agentbox.sandbox.server.settings import Domains, ExtraPaths
from jupyter_agentbox.sandbox.server.srt import srt_command, srt_extra_paths, srt_settings
from jupyter_agentbox.sandbox.server.view import Access, Mount, View
from tests.processes_alive import children, running, survivors

from .conftest import TIMEOUT, Start, can_reach, manager_of
from .sites import serving


def literal(path: Path) -> dict[str, Any]:
    return {"path": str(path), "literal": True}


@pytest.fixture
def view(tmp_path: Path) -> View:
    """A work directory with something kept and something hidden, and a library beside it."""
    work, library = tmp_path / "work", tmp_path / "library"
    for directory in (work / "kept", work / "hidden", library):
        directory.mkdir(parents=True)
    mounts = (
        Mount(library, Access.READ),
        Mount(tmp_path / "missing", Access.READ),
        Mount(tmp_path / "home", Access.PRIVATE),
        Mount(work, Access.WRITE),
        Mount(work / "kept", Access.READ),
        Mount(work / "hidden", Access.HIDDEN),
    )
    return View(mounts=mounts, work=work, home=tmp_path / "home")


def test_nothing_is_seen_but_what_the_view_names(view: View) -> None:
    told = srt_settings(view, sockets=Path("/run/s"), given={}, domains=Domains(), platform="linux")

    work, library = view.work, view.work.parent / "library"
    assert told == {
        "network": {
            "allowedDomains": [],
            "deniedDomains": [],
            "deniedResolvedAddresses": [],
            "allowAllUnixSockets": True,
        },
        "filesystem": {
            "denyRead": [literal(Path("/")), literal(work / "hidden")],
            "allowRead": [literal(library), literal(work), literal(work / "kept")],
            "allowWrite": [literal(work)],
            "denyWrite": [literal(work / "kept"), literal(work / "hidden")],
        },
    }


def test_on_macos_only_the_kernels_own_sockets_are_open(view: View) -> None:
    told = srt_settings(view, sockets=Path("/run/s"), given={}, domains=Domains(), platform="darwin")

    assert told["network"]["allowUnixSockets"] == ["/run/s"]
    assert "allowAllUnixSockets" not in told["network"]
    assert literal(Path("/System")) in told["filesystem"]["allowRead"]
    assert literal(Path("/")) in told["filesystem"]["denyRead"]


def test_its_own_file_can_only_add_what_was_taken_from_it(view: View) -> None:
    given = {
        "network": {
            "allowedDomains": ["example.com"],
            "deniedDomains": ["bad.example"],
            "allowLocalBinding": False,
        },
        "filesystem": {"denyRead": ["~/x", "**/.env", {"path": "~/y*", "literal": True}], "denyWrite": ["z"]},
    }
    told = srt_settings(view, sockets=Path("/s"), given=given, domains=Domains(allowed=("a.example:8443", "b.example")))

    home, work = view.home, view.work
    assert told["network"]["allowedDomains"] == ["example.com", "a.example:8443", "b.example:443", "b.example:80"]
    assert "10.0.0.0/8" in told["network"]["deniedResolvedAddresses"]
    assert told["network"]["deniedDomains"] == ["bad.example"]
    assert "allowLocalBinding" not in told["network"]
    assert told["filesystem"]["denyRead"][-3:] == [
        literal(home / "x"),
        f"{work}/**/.env",
        literal(home / "y*"),
    ]
    assert told["filesystem"]["denyWrite"][-1] == literal(work / "z")


def test_pattern_that_would_begin_with_a_pattern_is_refused(tmp_path: Path) -> None:
    view = View(mounts=(), work=tmp_path / "a[1]", home=tmp_path)
    given = {"filesystem": {"denyRead": ["*.env"]}}

    with pytest.raises(SandboxRefusedError, match="from the root on"):
        srt_settings(view, sockets=Path("/s"), given=given, domains=Domains())


def test_what_its_file_allows_becomes_part_of_the_view(tmp_path: Path) -> None:
    files = {"allowRead": ["/data", "~/books"], "allowWrite": [".", "../out", literal(Path("/a*"))]}

    found = srt_extra_paths(ExtraPaths(), {"filesystem": files}, work=tmp_path / "work", home=Path("/home/ada"))

    assert found.readable == (Path("/data"), Path("/home/ada/books"))
    assert found.writable == (tmp_path / "out", Path("/a*"))


def test_private_domains_cannot_be_said_to_it(view: View) -> None:
    with pytest.raises(SandboxRefusedError, match="private_domains"):
        srt_settings(view, sockets=Path("/s"), given={}, domains=Domains(private=("localhost:1",)))


def test_variables_inside_are_set_without_a_shell() -> None:
    assert srt_command("/bin/srt", Path("/s.json"), ["python", "a b"], env={"HOME": "/h"}) == [
        *("/bin/srt", "--settings", "/s.json", "--", "/usr/bin/env", "HOME=/h", "python", "a b")
    ]


def test_where_it_is_missing_that_is_said() -> None:
    with pytest.raises(SandboxRefusedError, match="srt: srt is not installed"):
        select_level([Isolation.SRT], srt="/nonexistent/srt")


def test_on_macos_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    # A level that worked is not tried again, and other tests of this process may have started bubblewrap.
    monkeypatch.setattr("jupyter_agentbox.sandbox.server.probes._WORKING", set())
    with pytest.raises(SandboxRefusedError, match="npm install -g @anthropic-ai/sandbox-runtime"):
        select_level([Isolation.BUBBLEWRAP, Isolation.SRT], srt="/nonexistent/srt")


def test_program_that_holds_nothing_is_not_taken_for_it(tmp_path: Path) -> None:
    liar = tmp_path / "srt"
    liar.write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    liar.chmod(0o755)

    with pytest.raises(SandboxRefusedError, match="not held: files, network, sockets of others, writing"):
        select_level([Isolation.SRT], srt=str(liar))


@pytest.fixture
def level() -> Isolation:
    can_reach(Isolation.SRT)
    return Isolation.SRT


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "page").write_text("hello from outside")
    with serving(tmp_path / "site") as server:
        yield server


#: `NO_PROXY` has this machine, as a rule rightly; here the page stands on it.
FETCH = """
import os, urllib.request
for name in ("NO_PROXY", "no_proxy"):
    os.environ.pop(name, None)
print(urllib.request.urlopen({url!r}).read().decode())
"""


async def test_its_own_settings_file_is_accepted(
    start: Start, places: Path, site: ThreadingHTTPServer, work: Path
) -> None:
    for name in ("library", "output"):
        (places / name).mkdir()
        (places / name / "file").write_text(name)
    (work / "secret").write_text("secret")
    here = f"127.0.0.1:{site.server_port}"
    file = places / "srt-settings.json"
    file.write_text(
        json.dumps(
            {
                "network": {"allowedDomains": [here], "deniedDomains": []},
                "filesystem": {
                    "denyRead": ["secret"],
                    "allowRead": [str(places / "library")],
                    "allowWrite": [".", "../../output"],
                    "denyWrite": [],
                },
            }
        )
    )
    async with start(sandbox_config=str(file)) as kernel:
        assert await kernel.run(FETCH.format(url=f"http://{here}/page")) == "hello from outside"
        assert "403" in await kernel.run(FETCH.format(url="http://other.example/"))
        assert await kernel.run(f"print(open({str(places / 'library' / 'file')!r}).read())") == "library"
        await kernel.run(f"open({str(places / 'output' / 'file')!r}, 'w').write('new')")
        assert "Error" in await kernel.run(f"open({str(places / 'library' / 'file')!r}, 'a')")
        assert "secret" not in (await kernel.run(f"print(open({str(work / 'secret')!r}).read())")).split()

    assert (places / "output" / "file").read_text() == "new"


async def test_where_there_are_no_guardians_a_reaper_ends_it(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_agentbox.sandbox.server.srt_backend._ON_LINUX", False)
    before = children()
    async with start() as kernel:
        started = children(beside=before)
        assert running("reaper", started)
        cell = await kernel.begin("import time; print('go'); time.sleep(60)")
        await kernel.manager.interrupt_kernel()
        assert await cell == "KeyboardInterrupt"
        assert await kernel.run("print(6 * 7)") == "42"
        await kernel.manager.shutdown_kernel(now=True)
        assert not await asyncio.to_thread(survivors, started, TIMEOUT)


async def test_it_leaves_nothing_in_the_work_directory(start: Start, work: Path) -> None:
    async with start() as kernel:
        assert await kernel.run("import os; print(os.listdir())") == "[]"

    assert list(work.iterdir()) == []


async def test_base_rules_hold_whatever_its_file_says(start: Start, places: Path) -> None:
    (places / "runtime" / "token").write_text("secret")
    (places / "config" / "mcp.json").write_text("secret")
    settings = {"filesystem": {"allowRead": [str(places)], "allowWrite": ["."]}}
    async with start(srt_settings=settings) as kernel:
        for file in ("runtime/token", "config/mcp.json"):
            assert "secret" not in (await kernel.run(f"print(open({str(places / file)!r}).read())")).split()


async def test_settings_that_open_another_way_are_refused(level: Isolation, places: Path, work: Path) -> None:
    manager = manager_of(level, places, srt_settings={"network": {"allowAllUnixSockets": True}})

    with pytest.raises(HTTPError) as refusal:
        await manager.start_kernel(cwd=str(work))

    assert "allowAllUnixSockets" in str(refusal.value.log_message)
