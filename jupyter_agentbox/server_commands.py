"""``jupyter agentbox servers``: signs in to and out of MCP servers of a running Jupyter server, in a terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from jupyter_agentbox.core.text import visible
from jupyter_agentbox.headless.discovery import known_token, running_servers
from jupyter_agentbox.headless.results import ExecutionError
from jupyter_agentbox.headless.server_api import ServerAddress
from jupyter_agentbox.headless.terminal_sign_in import TerminalSignIn, WayBackError

#: Exit codes, as in the other commands.
OK: Final = 0
#: Signing in or out failed.
FAILED: Final = 1
#: The command line is wrong, or no Jupyter server is found.
USAGE: Final = 2
#: Interrupted by Ctrl-C.
INTERRUPTED: Final = 130


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(argv)
    address = _address(options.server, options.token)
    if address is None:
        return _fail("none of your Jupyter servers is running on this machine; see --server", USAGE)
    try:
        with asyncio.Runner() as runner:
            return _run(TerminalSignIn(address, options.name), runner, is_out=options.verb == "sign-out")
    except ExecutionError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(sign_in: TerminalSignIn, runner: asyncio.Runner, *, is_out: bool) -> int:
    try:
        if is_out:
            runner.run(sign_in.sign_out())
            _show("You are signed out.")
            return OK
        return _sign_in(sign_in, runner)
    finally:
        sign_in.close()


def _sign_in(sign_in: TerminalSignIn, runner: asyncio.Runner) -> int:
    begun = runner.run(sign_in.begin())
    _show(
        f"Open this page, and look at its host, {begun.host}: that is whose page it is.\n\n{begun.address}\n\n"
        "Sign in there. Your browser is then sent back to Jupyter, where the page says that you are not signed in, or"
        " does not load. Copy the whole address of that page, and paste it here."
    )
    while True:
        sys.stdout.write("Address: ")
        sys.stdout.flush()
        line = sys.stdin.readline()  # in a thread: in the event loop, Ctrl-C would wait for the end of the line
        if not line:
            return _fail("no address was entered", FAILED)
        try:
            runner.run(sign_in.finish(begun, line))
        except WayBackError as error:
            _show(f"{error}: try again, or press Ctrl-C.")
        else:
            _show("You are signed in: the tools of this server now act as you.")
            return OK


def _show(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")
    sys.stdout.flush()


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"jupyter agentbox: {visible(text)}\n")
    return code


def _address(url: str | None, token: str | None) -> ServerAddress | None:
    if url is not None:
        return ServerAddress(url=f"{url.rstrip('/')}/", token=token or known_token(url))
    newest = next(iter(running_servers()), None)
    return None if newest is None else ServerAddress(url=newest.url, token=token or newest.token)


def _url(text: str) -> str:
    with suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme in {"http", "https"} and parts.hostname:
            return text
    raise argparse.ArgumentTypeError("must be a URL such as http://localhost:8888/")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jupyter agentbox", description="MCP servers of a running Jupyter server.")
    commands = parser.add_subparsers(dest="command", required=True)
    verbs = commands.add_parser("servers").add_subparsers(dest="verb", required=True)
    for verb, text in (
        ("sign-in", "sign in to a remote MCP server in your browser"),
        ("sign-out", "forget the sign-in to a remote MCP server, and stop it"),
    ):
        command = verbs.add_parser(verb, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("name", help="the MCP server's name")
        command.add_argument(
            "--server",
            metavar="URL",
            type=_url,
            help="the Jupyter server (default: your most recently started one on this machine)",
        )
        command.add_argument(
            "--token",
            default=os.environ.get("JUPYTER_TOKEN") or None,
            help="its token (default: the environment variable JUPYTER_TOKEN, or the server's runtime file)",
        )
    return parser
