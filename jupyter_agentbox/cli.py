"""``jupyter agentbox``: run code from a terminal, or for an MCP client, with approvals; install a sandboxed kernel."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.execution.sandbox_config import SandboxConfig, with_read_only
from jupyter_agentbox.executor.executor import CodeExecutor
from jupyter_agentbox.executor.requests import ApprovalRequest
from jupyter_agentbox.executor.results import CodeExecutionChunk, CodeExecutionError
from jupyter_agentbox.executor.rules import read_rules
from jupyter_agentbox.mcp_server.settings import Approver, CodeServerSettings
from jupyter_agentbox.sandbox import install

#: Exit codes.
OK: Final = 0
#: The code raised an error.
FAILED: Final = 1
#: The command line, the file or the rules are wrong, or there can be no sandbox; nothing ran.
USAGE: Final = 2
#: A call needed a decision, or was refused one.
REFUSED: Final = 3
#: The time was over.
TIMED_OUT: Final = 124
#: Interrupted by Ctrl-C.
INTERRUPTED: Final = 130

_NOBODY: Final = "nobody could be asked: there is no terminal, and no rule decides; see --rules"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    if name == "install-kernel":
        return install.main(rest)
    options = _parser().parse_args(argv)
    try:
        policy = read_rules(options.rules) if options.rules is not None else None
        if options.command == "mcp":
            return _serve_mcp(options, policy)
        cells = _read_cells(options.file)
        executor = _make_executor(options, policy)
    except (OSError, ValueError) as error:
        print(f"jupyter agentbox: {error}", file=sys.stderr)  # noqa: T201  # a command's output
        return USAGE
    return _execute(executor, cells, options.timeout)


def entry() -> None:
    """Run the command and exit with its code: the entry point ``jupyter-agentbox``."""
    sys.exit(main())


def _serve_mcp(options: argparse.Namespace, policy: Policy | None) -> int:
    from jupyter_agentbox.mcp_server import command  # noqa: PLC0415  # the MCP SDK takes a second

    if options.working_dir is not None and not options.working_dir.is_dir():
        raise ValueError(f"`{options.working_dir}` is no directory")
    return command.main(
        CodeServerSettings(
            approver=Approver(options.ask),
            server_url=options.server,
            token=options.token,
            policy=policy,
            timeout=options.timeout,
            working_dir=options.working_dir,
            images_dir=options.images_dir,
            mcp_config=options.mcp_config,
            approve_shell_cmds=options.approve_shell_cmds,
            approval_timeout=options.approval_timeout,
            sandbox=options.sandbox,
            sandbox_config=_sandbox_config(options),
            log_level=options.log_level,
        )
    )


def _make_executor(options: argparse.Namespace, policy: Policy | None) -> CodeExecutor:
    return CodeExecutor(
        policy=policy,
        working_dir=options.working_dir,
        images_dir=options.images_dir,
        approve_shell_cmds=options.approve_shell_cmds,
        mcp_config_path=options.mcp_config,
        sandbox=options.sandbox,
        sandbox_config=_sandbox_config(options),
        via=Via.TERMINAL,
    )


def _sandbox_config(options: argparse.Namespace) -> SandboxConfig | None:
    """Return the sandbox's settings, so that what runs in it cannot write the rules of the next time."""
    if options.rules is None or not (options.sandbox or options.sandbox_config is not None):
        config: Path | None = options.sandbox_config
        return config
    return with_read_only(options.sandbox_config, work_dir=options.working_dir, read_only=options.rules)


def _execute(executor: CodeExecutor, cells: Iterable[str], timeout: float | None) -> int:
    try:
        return asyncio.run(_run(executor, cells, timeout))
    except SandboxRefusedError as error:
        print(f"jupyter agentbox: {error}", file=sys.stderr)  # noqa: T201  # a command's output
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


class Asker:
    """Asks for decisions on the terminal, one at a time.

    Parameters
    ----------
    terminal : Terminal or None
        Where to ask; ``None`` to refuse.
    """

    def __init__(self, terminal: Terminal | None) -> None:
        self._terminal = terminal
        self.refused = False

    async def decide(self, request: ApprovalRequest) -> None:
        """Ask until the answer is clear, and give it to the request."""
        if self._terminal is None:
            self.refused = True
            await request.reject(_NOBODY)
            return
        self._terminal.show(f"\n{_described(request)}\n")
        while True:
            self._terminal.show("Run it? [y]es, [n]o, no with a [r]eason: ")
            line = await self._terminal.read_line()
            match line.strip().lower():
                case "y" | "yes":
                    await request.accept()
                    return
                case "r" | "reason":
                    self._terminal.show("Reason: ")
                    await self._reject(request, (await self._terminal.read_line()).strip())
                    return
                case "n" | "no":
                    await self._reject(request, "")
                    return
                case _ if not line:  # the terminal is gone
                    await self._reject(request, _NOBODY)
                    return

    async def _reject(self, request: ApprovalRequest, reason: str) -> None:
        self.refused = True
        await request.reject(reason)


async def _run(executor: CodeExecutor, cells: Iterable[str], timeout: float | None) -> int:
    with _open_terminal() as terminal:
        asker = Asker(terminal)
        try:
            async with executor:
                for cell in cells:
                    async for item in executor.stream(cell, timeout=timeout, chunks=True):
                        if isinstance(item, ApprovalRequest):
                            await asker.decide(item)
                        elif isinstance(item, CodeExecutionChunk):
                            sys.stdout.write(item.text)
                            sys.stdout.flush()
        except CodeExecutionError as error:
            print(f"\n{error}", file=sys.stderr)  # noqa: T201  # a command's output
            return REFUSED if asker.refused else FAILED
        except TimeoutError as error:
            print(f"\n{error}", file=sys.stderr)  # noqa: T201  # a command's output
            return TIMED_OUT
    return REFUSED if asker.refused else OK


class Terminal:
    """The terminal of this process, also if standard input is a file.

    Parameters
    ----------
    reader, writer : file
        Its two ends.
    """

    def __init__(self, reader: TextIO, writer: TextIO) -> None:
        self._reader = reader
        self._writer = writer

    def show(self, text: str) -> None:
        """Write text."""
        self._writer.write(text)
        self._writer.flush()

    async def read_line(self) -> str:
        """Wait for a line; empty if the terminal is gone."""
        return await asyncio.to_thread(self._reader.readline)


@contextmanager
def _open_terminal() -> Iterator[Terminal | None]:
    try:
        # A terminal cannot be opened for both at once: it cannot seek.
        with open("/dev/tty", encoding="utf-8") as reader, open("/dev/tty", "w", encoding="utf-8") as writer:  # noqa: PTH123
            yield Terminal(reader, writer)
    except OSError:
        yield None


def _described(request: ApprovalRequest) -> str:
    arguments = json.dumps(request.tool_args, indent=2, ensure_ascii=False, default=str)
    kernel = "a plain kernel" if request.isolation == Isolation.NONE.value else f"a sandbox ({request.isolation})"
    odd = look_alikes(server=request.server_name, tool=request.tool_name, arguments=request.tool_args)
    lines = [
        f"{request.server_name}.{request.tool_name} wants to run with",
        arguments,
        f"It was asked for in {kernel}.",
        *(f"Look closely: {one.text}" for one in odd),
    ]
    return visible("\n".join(lines))


def _read_cells(file: str) -> list[str]:
    """Return the code cells of a notebook; of a script, one.

    Raises
    ------
    OSError, ValueError
    """
    if file == "-":
        return [sys.stdin.read()]
    text = Path(file).read_text("utf-8")
    if not file.endswith(".ipynb"):
        return [text]
    notebook = json.loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError(f"`{file}` is no notebook")
    sources = [cell.get("source", "") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    return [source if isinstance(source, str) else "".join(source) for source in sources]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jupyter agentbox", description="Run code whose tool calls ask first.")
    commands = parser.add_subparsers(dest="command", required=True)
    execute = commands.add_parser("exec", help="run a script or a notebook, and ask in this terminal")
    execute.add_argument("file", help="a script, a notebook, or - for standard input")
    _add_options(execute, images="./images")
    serve = commands.add_parser("mcp", help="run code for an MCP client, and ask there or in JupyterLab")
    _add_options(serve, images="none are left")
    _add_mcp_options(serve)
    # Takes its own arguments; listed here for the help.
    commands.add_parser("install-kernel", help="install a kernel that runs in a sandbox", add_help=False)
    return parser


def _add_options(parser: argparse.ArgumentParser, *, images: str) -> None:
    parser.add_argument("--rules", type=Path, help="a JSON file of rules that allow or deny calls without asking")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        help="seconds that a cell may run, without the time for decisions (default: no limit)",
    )
    parser.add_argument("--working-dir", type=Path, help="where the code starts (default: here)")
    parser.add_argument("--images-dir", type=Path, help=f"where images are written (default: {images})")
    parser.add_argument("--mcp-config", type=Path, help="the file that names the MCP servers (default: Jupyter's)")
    parser.add_argument("--sandbox", action="store_true", help="run the code in a sandbox, or not at all")
    parser.add_argument("--sandbox-config", type=Path, metavar="FILE", help="a JSON file of its settings")
    parser.add_argument("--approve-shell-cmds", action="store_true", help="ask before shell commands, too")


def _add_mcp_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ask",
        choices=[approver.value for approver in Approver],
        default=Approver.AUTO.value,
        help="who decides about calls: the client's user, the user of a running JupyterLab, nobody, or the first of"
        " these that there is (default: auto)",
    )
    parser.add_argument("--server", metavar="URL", help="the Jupyter server to run code on, which decides about calls")
    parser.add_argument(
        "--token",
        default=os.environ.get("JUPYTER_TOKEN") or None,
        help="its token (default: JUPYTER_TOKEN in the environment, where others do not see it, or its runtime file)",
    )
    parser.add_argument(
        "--approval-timeout", type=_seconds, help="seconds that a call waits for its decision (default: for ever)"
    )
    parser.add_argument(
        "--log-level",
        choices=["DEBUG", "INFO", "WARNING", "ERROR"],
        default="WARNING",
        help="of the log on standard error (default: WARNING)",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise argparse.ArgumentTypeError("must be a number of seconds greater than 0")
    return seconds


if __name__ == "__main__":
    entry()
