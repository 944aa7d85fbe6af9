"""`KernelClient` at servers that are not ours: a plain Jupyter server, one with agentbox, one at a Hub's address."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from jupyter_agentbox import ExecutionError, ExecutionResult, KernelClient
from jupyter_agentbox.headless.discovery import known_token, running_servers
from tests.headless.chunks import joined, take_until
from tests.integration.conftest import Server, start_server
from tests.loops import loop_of_the_file

TIMEOUT = 60
HUB_LIKE = "/user/anna/"
PNG = b"\x89PNG picture"


jp_asyncio_loop = pytest.fixture(scope="module", autouse=True)(loop_of_the_file)


@pytest.fixture(scope="module")
def start(
    tmp_path_factory: pytest.TempPathFactory, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> Iterator[Callable[[bool, str], Server]]:
    """Return a Jupyter server, with agentbox or without it, at a path; each kind is started once."""

    started: list[Server] = []

    @cache
    def start(agentbox: bool, path: str) -> Server:
        root = tmp_path_factory.mktemp("server")
        options = (f"--ServerApp.base_url={path}",)
        server = jp_asyncio_loop.run_until_complete(start_server(root, options=options, agentbox=agentbox))
        started.append(server)
        server.hang_up()
        assert ("jupyter_agentbox | extension was successfully linked" in (root / "server.log").read_text()) == agentbox
        return server

    yield start
    for server in started:
        jp_asyncio_loop.run_until_complete(server.stop())


@pytest.fixture(params=itertools.product((False, True), ("/", HUB_LIKE)), ids=str)
def server(
    request: pytest.FixtureRequest,
    start: Callable[[bool, str], Server],
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> Iterator[Server]:
    """A Jupyter server, without agentbox or with it, at the root or at a Hub's address."""
    server = start(*request.param)
    yield server
    jp_asyncio_loop.run_until_complete(end_kernels(server))


@pytest.fixture
def plain(start: Callable[[bool, str], Server], jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """A plain Jupyter server at a Hub's address."""
    server = start(False, HUB_LIKE)
    yield server
    jp_asyncio_loop.run_until_complete(end_kernels(server))


async def end_kernels(server: Server) -> None:
    for kernel in await kernels(server):
        await server.api("DELETE", f"api/kernels/{kernel}")


async def kernels(server: Server) -> list[str]:
    _, found = await server.api("GET", "api/kernels")
    return [kernel["id"] for kernel in found]


async def test_code_runs_in_a_kernel_of_its_own_that_ends_with_the_client(server: Server, tmp_path: Path) -> None:
    code = f"from IPython.display import HTML, Image, display\ndisplay(HTML('<b>'), Image({PNG!r}, format='png'))"
    async with KernelClient(url=server.url, token=server.token, images_dir=tmp_path / "images") as client:
        assert await kernels(server) == [client.kernel_id]
        assert (await client.execute("6 * 7")).text == "42"
        items = [item async for item in client.stream("print('a')\n'b'")]
        assert joined(items) == ["a\n'b'", ExecutionResult(text="a\n'b'")]
        rich = await client.execute(code)
        with pytest.raises(ExecutionError, match="ZeroDivisionError") as caught:
            await client.execute("1 / 0")
        with pytest.raises(ExecutionError, match="StdinNotImplementedError"):
            await client.execute("input()")
        with pytest.raises(TimeoutError):
            await client.execute("while True: pass", timeout=0.5)
        await client.execute("x = 1")
        assert (await client.execute("x")).text == "1"
        await client.reset()
        with pytest.raises(ExecutionError, match="NameError"):
            await client.execute("x")
        assert await kernels(server) == [client.kernel_id]

    assert [path.read_bytes() for path in rich.images] == [PNG]
    assert rich.mime_bundles[0]["text/html"] == "<b>"
    assert base64.b64decode(rich.mime_bundles[1]["image/png"]) == PNG
    assert "\x1b" not in str(caught.value)
    assert await kernels(server) == []


async def test_attached_clients_share_a_kernel_and_leave_it_running(server: Server) -> None:
    _, answer = await server.api("POST", "api/kernels", {})
    address = {"url": server.url, "token": server.token, "kernel_id": answer["id"]}
    async with KernelClient(**address) as one, KernelClient(**address) as two:
        await one.execute("x = 'shared'")
        assert (await two.execute("x")).text == "'shared'"
        outputs = await asyncio.gather(*(client.execute(f"print({n})") for n, client in enumerate((one, two))))
        assert [output.text for output in outputs] == ["0", "1"]  # nobody gets the other's
    assert await kernels(server) == [answer["id"]]

    async with KernelClient(**address) as client:
        assert (await client.execute("x")).text == "'shared'"
        await client.reset()
        assert client.kernel_id == answer["id"]
        with pytest.raises(ExecutionError, match="NameError"):
            await client.execute("x")
    assert await kernels(server) == [answer["id"]]


async def test_a_kernel_that_runs_something_can_be_attached_to_and_interrupted(plain: Server) -> None:
    async with KernelClient(url=plain.url, token=plain.token) as owner:
        text = owner.stream("print('begun')\nwhile True: pass")
        await take_until("begun\n", text)
        async with asyncio.timeout(TIMEOUT):
            async with KernelClient(url=plain.url, token=plain.token, kernel_id=owner.kernel_id) as other:
                waiting = asyncio.ensure_future(other.execute("'after'"))
                await other.interrupt()
                with pytest.raises(ExecutionError, match="KeyboardInterrupt"):
                    await anext(text)
                assert (await waiting).text == "'after'"


async def test_what_a_server_refuses_says_what_to_do(plain: Server) -> None:
    port = int(plain.url.split(":")[2].split("/")[0])
    with pytest.raises(ExecutionError, match=r"refused \(403\): its token"):
        await KernelClient(url=plain.url, token="wrong").connect()
    with pytest.raises(ExecutionError, match=r"refused \(403\): its token"):
        await KernelClient(url=plain.url).connect()  # its runtime file is not where this process looks
    with pytest.raises(ExecutionError, match="no such kernel"):
        await KernelClient(url=plain.url, token=plain.token, kernel_id="missing").connect()
    with pytest.raises(ExecutionError, match="base URL"):
        await KernelClient(port=port, token=plain.token).connect()
    with pytest.raises(ExecutionError, match="no-such-kind"):
        await KernelClient(url=plain.url, token=plain.token, kernel_name="no-such-kind").connect()
    with pytest.raises(ExecutionError, match="no Jupyter server answers"):
        await KernelClient(url="http://127.0.0.1:9/user/anna/", token="x").connect()
    with pytest.raises(ValueError, match="working_dir"):
        KernelClient(url=plain.url, token=plain.token, kernel_id="any", working_dir="/")
    with pytest.raises(ExecutionError, match="cannot work in `/no/such/place`"):
        await KernelClient(url=plain.url, token=plain.token, working_dir="/no/such/place").connect()
    assert await kernels(plain) == []


async def test_a_server_that_goes_away_is_an_error_at_once_and_reset_says_so(tmp_path: Path) -> None:
    server = await start_server(tmp_path, agentbox=False)
    client = KernelClient(url=server.url, token=server.token)
    await client.connect()
    text = client.stream("print('begun')\nwhile True: pass")
    await take_until("begun\n", text)
    await server.stop()
    async with asyncio.timeout(TIMEOUT):
        # It interrupts its kernels before it ends them, and now and then what they say then still comes through.
        with pytest.raises(ExecutionError, match=r"kernel ended|connection|KeyboardInterrupt"):
            await anext(text)
        with pytest.raises(ExecutionError, match=r"`reset\(\)` gives a fresh"):
            await client.execute("1")
        with pytest.raises(ExecutionError, match="no Jupyter server answers"):
            await client.reset()
        await client.disconnect()


async def test_a_kernel_that_dies_is_an_error_and_reset_gives_a_fresh_one(plain: Server) -> None:
    async with KernelClient(url=plain.url, token=plain.token) as client:
        async with asyncio.timeout(TIMEOUT):
            with pytest.raises(ExecutionError, match="reset"):
                await client.execute("import os; os._exit(1)")
            await client.reset()
            assert (await client.execute("1")).text == "1"
        assert await kernels(plain) == [client.kernel_id]


class _Page(RequestHandler):
    """A page, or the way to another one; keeps the tokens that it was sent."""

    def initialize(self, seen: list[str], to: str = "") -> None:
        self.seen = seen
        self.to = to

    def post(self) -> None:
        self.seen.append(self.request.headers.get("Authorization", ""))
        if self.to:
            self.redirect(self.to, status=307)
        else:
            self.finish("<html>")

    get = post


async def test_a_token_follows_no_redirect_and_what_is_no_jupyter_server_is_told(
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> None:
    here: list[str] = []
    seen: list[str] = []
    socket, port = bind_unused_port()
    moved = {"seen": here, "to": f"http://localhost:{port}/login/"}
    routes = [(r"/moved/.*", _Page, moved), (r"/.*", _Page, {"seen": seen})]
    site = HTTPServer(Application(routes))
    site.add_socket(socket)
    try:
        with pytest.raises(ExecutionError, match=f"redirects to localhost:{port}"):
            await KernelClient(url=f"http://127.0.0.1:{port}/moved/", token="s3cret").connect()
        assert (here, seen) == (["token s3cret"], [])
        with pytest.raises(ExecutionError, match="is not a Jupyter server"):
            await KernelClient(url=f"http://127.0.0.1:{port}/page/", token="s3cret").connect()
    finally:
        site.stop()
        await site.close_all_connections()


async def test_the_token_of_a_server_here_is_found_and_is_given_to_no_other_machine(
    plain: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(plain.root / "runtime"))
    async with KernelClient(url=plain.url) as client:
        assert (await client.execute("1")).text == "1"
    port = plain.url.split(":")[2].split("/")[0]

    assert known_token(f"http://localhost:{port}/other/") == plain.token
    assert known_token(f"http://example.org:{port}/user/anna/") == ""
    assert known_token("http://localhost:1/") == ""
    assert known_token("no url") == ""


def test_files_of_servers_that_do_not_run_or_are_elsewhere_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    import os

    def write(number: int, **info: object) -> None:
        path = tmp_path / f"jpserver-{number}.json"
        path.write_text(json.dumps({"pid": os.getpid(), "token": str(number), "hostname": "localhost", **info}))
        os.utime(path, (number, number))

    write(1, url="http://localhost:1/")
    write(2, url="http://localhost:2/", pid=2**22 + 1)
    write(3, url="http://node7.example.org:3/")
    write(4, url="http+unix://%2Frun%2Fjupyter.sock/")
    write(5, url="http://some-name:5/x/", hostname="0.0.0.0", port=5, base_url="/x/", secure=True)
    (tmp_path / "jpserver-6.json").write_text("{")
    (tmp_path / "jpserver-7.json").write_text("[]")

    assert [(server.url, server.token) for server in running_servers()] == [
        ("https://localhost:5/x/", "5"),
        ("http://localhost:1/", "1"),
    ]
