"""``jupyter agentbox``: run code with approvals, install a sandboxed kernel, verify the record of what ran."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from jupyter_agentbox import database_commands, history_commands, server_commands
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.terminal import KNOWN_STATE, TerminalFilter
from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.headless.executor import CodeExecutor
from jupyter_agentbox.headless.requests import ApprovalRequest
from jupyter_agentbox.headless.results import CodeExecutionChunk, CodeExecutionError
from jupyter_agentbox.headless.rules import read_rules
from jupyter_agentbox.headless.sandbox_config import SandboxConfig, with_read_only
from jupyter_agentbox.mcp_server.settings import BUSY_TIMEOUT, Approver, CodeServerSettings
from jupyter_agentbox.sandbox import install

#: Exit codes.
OK: Final = 0
#: The code raised an error.
FAILED: Final = 1
#: The command line, the file or the rules are wrong, or no sandbox is available. Nothing ran.
USAGE: Final = 2
#: A call needed a decision that nobody could make, or was rejected.
REFUSED: Final = 3
#: The time limit was reached.
TIMED_OUT: Final = 124
#: Interrupted by Ctrl-C.
INTERRUPTED: Final = 130

_NOBODY: Final = (
    "nobody could be asked: there is no terminal, and no rule covers this call; see --rules, or let it wait in"
    " JupyterLab with --ask jupyterlab"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    if name == "install-kernel":
        return install.main(rest)
    if name == "hub":
        from jupyter_agentbox.hub import app as hub_service  # noqa: PLC0415  # an extra, that others need not have

        return hub_service.main(rest)
    if name == "doctor":
        from jupyter_agentbox import doctor  # noqa: PLC0415  # looks into parts that the others do not need

        return doctor.main(rest)
    if name == "auth-state-headers":
        from jupyter_agentbox.hub import auth_state_headers  # noqa: PLC0415  # only the Hub service runs it

        return auth_state_headers.main(rest)
    if name in history_commands.NAMES:
        return history_commands.main([name, *rest])
    if name in database_commands.NAMES:
        return database_commands.main([name, *rest])
    if name in server_commands.NAMES:
        return server_commands.main([name, *rest])
    options = _parser().parse_args(argv)
    try:
        policy = read_rules(options.rules) if options.rules is not None else None
        if options.command == "mcp":
            return _serve_mcp(options, policy)
        cells = _read_cells(options.file)
        executor = None if _asks_jupyterlab(options) else _make_executor(options, policy)
    except (OSError, ValueError) as error:
        return _fail(error)
    return _execute_in_jupyterlab(options, cells) if executor is None else _execute(executor, cells, options.timeout)


def entry() -> None:
    """Run the command and exit with its code: the entry point ``jupyter-agentbox``."""
    sys.exit(main())


def _serve_mcp(options: argparse.Namespace, policy: Policy | None) -> int:
    from jupyter_agentbox.mcp_server import command  # noqa: PLC0415  # the MCP SDK takes a second

    if options.working_dir is not None and not options.working_dir.is_dir():
        raise ValueError(f"`{options.working_dir}` is not a directory")
    return command.main(
        CodeServerSettings(
            approver=Approver(options.ask),
            server_url=options.server,
            token=options.token,
            policy=policy,
            timeout=options.timeout,
            busy_timeout=options.busy_timeout,
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
    """Return the sandbox's settings, with which the code cannot change the rules of the next run."""
    if options.rules is None or not (options.sandbox or options.sandbox_config is not None):
        config: Path | None = options.sandbox_config
        return config
    return with_read_only(options.sandbox_config, work_dir=options.working_dir, read_only=options.rules)


def _execute(executor: CodeExecutor, cells: Iterable[str], timeout: float | None) -> int:
    try:
        return asyncio.run(_run(executor, cells, timeout))
    except SandboxRefusedError as error:
        return _fail(error)
    except KeyboardInterrupt:
        return INTERRUPTED


def _asks_jupyterlab(options: argparse.Namespace) -> bool:
    """Whether the user of a JupyterLab decides.

    Raises
    ------
    ValueError
        If other options contradict that.
    """
    if options.ask == "terminal" and options.server is not None:
        raise ValueError("with `--server`, the user of that server decides: leave out `--ask terminal`")
    if options.ask != "jupyterlab" and options.server is None:
        return False
    names = ("rules", "mcp_config", "sandbox", "sandbox_config", "approve_shell_cmds")
    given = [f"`--{name.replace('_', '-')}`" for name in names if getattr(options, name)]
    if given:
        raise ValueError(
            f"{' and '.join(given)} cannot be used with `--ask jupyterlab`: JupyterLab's own rules, MCP servers and"
            " kernels are used"
        )
    return True


def _execute_in_jupyterlab(options: argparse.Namespace, cells: Sequence[str]) -> int:
    """Run cells where their calls wait for the user of a JupyterLab."""
    from jupyter_agentbox import exec_in_jupyterlab  # noqa: PLC0415  # the others need no HTTP client

    with _open_terminal() as terminal:
        output = Output(sys.stdout, has_terminal=terminal is not None)
        errors = Output(sys.stderr, has_terminal=terminal is not None)

        def tell(line: str) -> None:
            output.end_line()
            errors.write(f"jupyter agentbox: {visible(line)}\n")

        running = exec_in_jupyterlab.run_cells(
            cells,
            url=options.server,
            token=options.token,
            working_dir=options.working_dir or (Path.cwd() if options.server is None else None),
            images_dir=options.images_dir or Path("images"),
            timeout=options.timeout,
            write=output.write,
            tell=tell,
        )
        try:
            end = asyncio.run(running)
        except exec_in_jupyterlab.SessionError as error:
            return _fail(error)
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            output.end()
        if end.error is not None:
            errors.write(f"\n{end.error}\n")
        if end.is_out_of_time:
            return TIMED_OUT
        if end.has_rejected:
            return REFUSED
        return OK if end.error is None else FAILED


def _fail(error: Exception) -> int:
    sys.stderr.write(f"jupyter agentbox: {visible(str(error))}\n")
    return USAGE


class TerminalReviewer:
    """Asks for decisions in the terminal, one at a time.

    Parameters
    ----------
    terminal : Terminal or None
        Where to ask; ``None`` to refuse all requests.
    """

    def __init__(self, terminal: Terminal | None) -> None:
        self._terminal = terminal
        self.refused = False

    async def decide(self, request: ApprovalRequest) -> None:
        """Ask until the answer is clear, and apply it to the request."""
        if self._terminal is None:
            self.refused = True
            await request.reject_unasked(_NOBODY)
            return
        self._terminal.begin_question(_described(request))
        while True:
            self._terminal.show(f"Run {one_line(_name(request))}? [y]es, [n]o, no with a [r]eason: ")
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
        reviewer = TerminalReviewer(terminal)
        output = Output(sys.stdout, has_terminal=terminal is not None)
        try:
            async with executor:
                for cell in cells:
                    async for item in executor.stream(cell, timeout=timeout, chunks=True):
                        if isinstance(item, ApprovalRequest):
                            output.end_line()
                            await reviewer.decide(item)
                        elif isinstance(item, CodeExecutionChunk):
                            output.write(item.text)
        except (CodeExecutionError, TimeoutError) as error:
            output.end_line()
            Output(sys.stderr, has_terminal=terminal is not None).write(f"\n{error}\n")
            if isinstance(error, TimeoutError):
                return TIMED_OUT
            return REFUSED if reviewer.refused else FAILED
        finally:
            output.end()
    return REFUSED if reviewer.refused else OK


class Output:
    """Writes the code's output.

    A terminal obeys control sequences, so it gets only text and colors. So does a pipe if there is a terminal, because
    programs such as `tee` or `less` show it there. A file, and a pipe without a terminal, get everything.

    Parameters
    ----------
    stream : file
        Standard output or standard error.
    has_terminal : bool
        Whether the process has a terminal.
    """

    def __init__(self, stream: TextIO, *, has_terminal: bool) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._filter: TerminalFilter | None = None
        if self._is_terminal:
            self._filter = TerminalFilter()
        elif has_terminal and _is_pipe(stream):
            # Lines of data may end with a carriage return and a line feed.
            self._filter = TerminalFilter(carriage_return="\r")

    def write(self, text: str) -> None:
        """Write some of the code's output."""
        self._stream.write(text if self._filter is None else self._filter.feed(text))
        self._stream.flush()

    def end_line(self) -> None:
        """Make the next text in the terminal visible and start on a new line, whatever the code wrote last."""
        if self._is_terminal and self._filter is not None:
            self._stream.write(KNOWN_STATE if self._filter.is_at_line_start else f"{KNOWN_STATE}\n")
            self._stream.flush()
            self._filter = TerminalFilter()

    def end(self) -> None:
        """Restore the terminal's own colors."""
        if self._is_terminal:
            self._stream.write(KNOWN_STATE)
            self._stream.flush()


class Terminal:
    """The process's terminal, even if standard input is a file.

    Parameters
    ----------
    reader, writer : file
        The two ends of the pipe.
    """

    def __init__(self, reader: TextIO, writer: TextIO) -> None:
        self._reader = reader
        self._writer = writer

    def begin_question(self, text: str) -> None:
        """Write a question to a terminal in a known state, and discard what was typed before it was asked.

        Somebody may have answered output of the code that looked like a question.
        """
        import termios  # noqa: PLC0415  # not on every platform

        self.show(f"{KNOWN_STATE}\n{text}\n")
        with suppress(termios.error):  # it is gone, as reading will show
            termios.tcflush(self._reader.fileno(), termios.TCIFLUSH)

    def show(self, text: str) -> None:
        """Write text."""
        self._writer.write(text)
        self._writer.flush()

    async def read_line(self) -> str:
        """Wait for a line; empty if the terminal is gone."""
        await self._has_line()
        line = self._reader.readline()
        if not line.endswith("\n"):
            self.show("\n")  # ended with Ctrl-D: the code's next output must not continue the question
        return line

    async def _has_line(self) -> None:
        """Wait until a line can be read. A thread blocked in a read could not be stopped by Ctrl-C."""
        stopped, stop = os.pipe()
        ends: list[int] = [self._reader.fileno(), stopped]
        nothing: list[int] = []
        waiting = asyncio.ensure_future(asyncio.to_thread(select.select, ends, nothing, nothing))
        try:
            await asyncio.shield(waiting)
        finally:
            os.write(stop, b"\0")
            await waiting
            os.close(stopped)
            os.close(stop)


@contextmanager
def _open_terminal() -> Iterator[Terminal | None]:
    try:
        # A terminal cannot be opened for both at once, because it cannot seek.
        with open("/dev/tty", encoding="utf-8") as reader, open("/dev/tty", "w", encoding="utf-8") as writer:  # noqa: PTH123
            yield Terminal(reader, writer)
    except OSError:
        yield None


def _described(request: ApprovalRequest) -> str:
    arguments = json.dumps(request.tool_args, indent=2, ensure_ascii=False, default=str)
    kernel = {
        Isolation.NONE.value: "a plain kernel",
        Isolation.REMOTE.value: "a kernel on another machine",
    }.get(request.isolation, f"a sandbox ({request.isolation})")
    odd = look_alikes(server=request.server_name, tool=request.tool_name, arguments=request.tool_args)
    lines = [
        f"{_name(request)} wants to run with",
        arguments,
        f"The request came from {kernel}.",
        *(f"Look closely: {one.text}" for one in odd),
    ]
    return visible("\n".join(lines))


def _name(request: ApprovalRequest) -> str:
    return f"{request.server_name}.{request.tool_name}"


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # it is not a file of the operating system
        return False


def _read_cells(file: str) -> list[str]:
    """Return the code cells of a notebook, or a script as one cell.

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
        raise ValueError(f"`{file}` is not a notebook")
    sources = [cell.get("source", "") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    return [source if isinstance(source, str) else "".join(source) for source in sources]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jupyter agentbox", description="Run code whose tool calls need approval.")
    commands = parser.add_subparsers(dest="command", required=True)
    execute = commands.add_parser("exec", help="run a script or a notebook, and ask for approval in this terminal")
    execute.add_argument("file", help="a script, a notebook, or `-` for standard input")
    _add_options(execute, images="./images")
    execute.add_argument(
        "--ask",
        choices=["terminal", "jupyterlab"],
        help="who decides calls: whoever is at this terminal, or the user of a running JupyterLab, where the code then"
        " runs (default: terminal, and with --server, jupyterlab)",
    )
    _add_server_options(execute)
    serve = commands.add_parser("mcp", help="run code for an MCP client, and ask for approval there or in JupyterLab")
    _add_options(serve, images="none; images are not kept")
    _add_mcp_options(serve)
    # These parse their own arguments; they are listed here for the help.
    commands.add_parser("install-kernel", help="install a kernel that runs in a sandbox", add_help=False)
    commands.add_parser("hub", help="serve central tools, approvals and the record beside a JupyterHub", add_help=False)
    commands.add_parser("doctor", help="check that everything needed for approvals is in place", add_help=False)
    commands.add_parser(
        "auth-state-headers", help="print a header with a token of a user's sign-in to JupyterHub", add_help=False
    )
    for name, text in {**history_commands.NAMES, **server_commands.NAMES, **database_commands.NAMES}.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser


def _add_options(parser: argparse.ArgumentParser, *, images: str) -> None:
    parser.add_argument("--rules", type=Path, help="a JSON file with rules that allow or deny calls without asking")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        help="how long a cell may run, in seconds, without the time for decisions (default: no limit)",
    )
    parser.add_argument(
        "--working-dir", type=Path, help="the directory in which the code starts (default: the current one)"
    )
    parser.add_argument("--images-dir", type=Path, help=f"the directory that images are written to (default: {images})")
    parser.add_argument(
        "--mcp-config", type=Path, help="the file that lists the MCP servers (default: Jupyter's mcp.json)"
    )
    parser.add_argument("--sandbox", action="store_true", help="run the code in a sandbox; without one, do not run it")
    parser.add_argument("--sandbox-config", type=Path, metavar="FILE", help="a JSON file with the sandbox's settings")
    parser.add_argument("--approve-shell-cmds", action="store_true", help="also ask before shell commands")


def _add_mcp_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ask",
        choices=[approver.value for approver in Approver],
        default=Approver.AUTO.value,
        help="who decides calls: the client's user, the user of a running JupyterLab, nobody, "
        "or the first of these that is available (default: auto)",
    )
    _add_server_options(parser)
    parser.add_argument(
        "--approval-timeout", type=_seconds, help="how long a call waits for a decision, in seconds (default: for ever)"
    )
    parser.add_argument(
        "--busy-timeout",
        type=_seconds,
        default=BUSY_TIMEOUT,
        help="how long a request waits while an earlier one keeps the kernel busy, in seconds; after "
        "that it fails with an error that says what the earlier one is doing (default: "
        f"{BUSY_TIMEOUT:g})",
    )
    parser.add_argument(
        "--log-level",
        choices=["DEBUG", "INFO", "WARNING", "ERROR"],
        default="WARNING",
        help="how much to log on standard error (default: WARNING)",
    )


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server", metavar="URL", help="the Jupyter server on which the code runs and calls are decided"
    )
    parser.add_argument(
        "--token",
        default=os.environ.get("JUPYTER_TOKEN") or None,
        help="the token of that server (default: the environment variable JUPYTER_TOKEN, which other "
        "users cannot see, or the server's runtime file)",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise argparse.ArgumentTypeError("must be a number of seconds, greater than 0")
    return seconds


if __name__ == "__main__":
    entry()
