"""``jupyter agentbox``: run code with approvals, install a sandboxed kernel, verify the record of what ran."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TextIO

from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.terminal import KNOWN_STATE, TerminalFilter
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.headless.executed_notebook import ExecutedNotebook
from jupyter_agentbox.headless.executor import CodeExecutor
from jupyter_agentbox.headless.requests import ApprovalRequest
from jupyter_agentbox.headless.results import CodeExecutionChunk, CodeExecutionError, OutputMessage
from jupyter_agentbox.headless.rules import read_rules
from jupyter_agentbox.headless.sandbox_config import SandboxConfig, with_read_only
from jupyter_agentbox.headless.terminal import Terminal, open_terminal
from jupyter_agentbox.headless.terminal_reviewer import TerminalReviewer
from jupyter_agentbox.headless.terminal_texts import decided_unasked
from jupyter_agentbox.mcp_server.settings import BUSY_TIMEOUT, Approver, CodeServerSettings

#: Commands of modules that are imported only for them, with their help.
_HISTORY_COMMANDS: Final = {
    "history": "show what ran, who allowed it, and how it ended",
    "audit": "check that nobody has changed the record of all calls",
}
_SERVER_COMMANDS: Final = {"servers": "sign in to or out of a remote MCP server of a running Jupyter server"}
_DATABASE_COMMANDS: Final = {"db": "create or upgrade a database's tables, or remove old requests, as an administrator"}

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    if name == "install-kernel":
        from jupyter_agentbox.sandbox import install  # noqa: PLC0415  # the others need no kernelspecs

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
    if name in _HISTORY_COMMANDS:
        from jupyter_agentbox import history_commands  # noqa: PLC0415  # SQLAlchemy takes a quarter of a second

        return history_commands.main([name, *rest])
    if name in _DATABASE_COMMANDS:
        from jupyter_agentbox import database_commands  # noqa: PLC0415  # as above

        return database_commands.main([name, *rest])
    if name in _SERVER_COMMANDS:
        from jupyter_agentbox import server_commands  # noqa: PLC0415  # the others need no HTTP client

        return server_commands.main([name, *rest])
    options = _parser().parse_args(argv)
    try:
        policy = read_rules(options.rules) if options.rules is not None else None
        if options.command == "mcp":
            return _serve_mcp(options, policy)
        return _execute_file(options, policy)
    except (OSError, ValueError) as error:
        return _fail(error)


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


def _execute_file(options: argparse.Namespace, policy: Policy | None) -> int:
    """Run a script or a notebook, and return the exit code.

    Raises
    ------
    OSError, ValueError
        The command line or the file is wrong, and nothing ran.
    """
    notebook = _read_notebook(options.file) if options.file.endswith(".ipynb") else None
    cells = [_read_script(options.file)] if notebook is None else notebook.sources
    output = _output_path(options)
    if _asks_jupyterlab(options):
        return _execute_in_jupyterlab(options, cells)
    code = _execute(_make_executor(options, policy), cells, options, notebook)
    if notebook is None or output is None or code == USAGE:
        return code
    return _write(notebook, output, like=Path(options.file), code=code)


def _execute(
    executor: CodeExecutor, cells: Iterable[str], options: argparse.Namespace, notebook: ExecutedNotebook | None
) -> int:
    try:
        return asyncio.run(_run(executor, cells, options, notebook))
    except SandboxRefusedError as error:
        return _fail(error)
    except KeyboardInterrupt as interrupt:
        if notebook is not None:
            notebook.fail(interrupt)
        return INTERRUPTED


def _write(notebook: ExecutedNotebook, path: Path, *, like: Path, code: int) -> int:
    """Write the executed notebook, and return the exit code."""
    try:
        notebook.write(path, like=like)
    except OSError as error:
        sys.stderr.write(f"jupyter agentbox: the executed notebook was not written: {visible(str(error))}\n")
        return code or FAILED
    return code


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

    with open_terminal() as terminal:
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


async def _run(
    executor: CodeExecutor, cells: Iterable[str], options: argparse.Namespace, notebook: ExecutedNotebook | None
) -> int:
    with open_terminal() as terminal:
        reader = _Reader(terminal, notebook, is_quiet=options.quiet)
        try:
            async with executor:
                for index, cell in enumerate(cells):
                    if notebook is not None:
                        notebook.begin_cell(index)
                    async for item in executor.run_approved(
                        cell, timeout=options.timeout, chunks=True, outputs=notebook is not None
                    ):
                        await reader.read(item)
        except (CodeExecutionError, TimeoutError) as error:
            reader.fail(error)
            if isinstance(error, TimeoutError):
                return TIMED_OUT
            return REFUSED if reader.has_refused else FAILED
        finally:
            reader.end()
    return REFUSED if reader.has_refused else OK


class _Reader:
    """Shows what comes from code that runs: its output, its requests, and the calls that nobody was asked about."""

    def __init__(self, terminal: Terminal | None, notebook: ExecutedNotebook | None, *, is_quiet: bool) -> None:
        self._reviewer = TerminalReviewer(terminal)
        self._output = Output(sys.stdout, has_terminal=terminal is not None)
        self._errors = Output(sys.stderr, has_terminal=terminal is not None)
        self._notebook = notebook
        self._is_quiet = is_quiet
        self._told: set[str] = set()

    @property
    def has_refused(self) -> bool:
        """Whether a request was rejected, or nobody could be asked."""
        return self._reviewer.refused

    async def read(self, item: object) -> None:
        """Show an item, and ask if it is a request."""
        match item:
            case ApprovalRequest():
                self._output.end_line()
                await self._reviewer.decide(item)
            case StoredRequest():
                self._tell_of(item)
            case CodeExecutionChunk():
                self._output.write(item.text)
            case OutputMessage() if self._notebook is not None:
                self._notebook.add(item)

    def fail(self, error: Exception) -> None:
        """Show the error that ended the code."""
        if self._notebook is not None:
            self._notebook.fail(error)
        self._output.end_line()
        self._errors.write(f"\n{error}\n")

    def end(self) -> None:
        """Restore the terminal's own colors."""
        self._output.end()

    def _tell_of(self, stored: StoredRequest) -> None:
        if self._is_quiet or stored.id in self._reviewer.asked | self._told:
            return
        if line := decided_unasked(stored):
            self._told.add(stored.id)
            self._output.end_line()
            self._errors.write(f"jupyter agentbox: {line}\n")


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


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # it is not a file of the operating system
        return False


def _read_script(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")


def _read_notebook(file: str) -> ExecutedNotebook:
    """Return a notebook, whose code cells are to run.

    Raises
    ------
    OSError, ValueError
    """
    notebook = json.loads(Path(file).read_text("utf-8"))
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError(f"`{file}` is not a notebook")
    return ExecutedNotebook(notebook)


def _output_path(options: argparse.Namespace) -> Path | None:
    """Return where the executed notebook is written; ``None`` if it is not.

    Raises
    ------
    ValueError
        It cannot be written there.
    """
    if options.output is None and not options.inplace:
        return None
    option = "--inplace" if options.inplace else "--output"
    if not options.file.endswith(".ipynb"):
        raise ValueError(f"`{option}` is for notebooks, and `{options.file}` is none")
    if options.ask == "jupyterlab" or options.server is not None:
        raise ValueError(
            f"`{option}` cannot be used with `--ask jupyterlab`: outputs of kernels there are not collected"
        )
    source = Path(options.file)
    path: Path = source if options.inplace else options.output
    if not options.inplace and path.exists() and path.samefile(source):
        raise ValueError(f"`{path}` is the notebook that runs: to write into it, use `--inplace`")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"`{path}` is not a file in a directory that exists")
    # Before code can put a link there: that of a person is followed, that of the code is replaced.
    return path.resolve()


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
    written = execute.add_mutually_exclusive_group()
    written.add_argument(
        "--output", type=Path, metavar="FILE", help="write the executed notebook there, also if a cell fails"
    )
    written.add_argument(
        "--inplace",
        action="store_true",
        help="write the executed notebook over the one that runs, also if a cell fails",
    )
    execute.add_argument(
        "-q", "--quiet", action="store_true", help="do not name the calls that a rule or an earlier answer decided"
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
    for name, text in {**_HISTORY_COMMANDS, **_SERVER_COMMANDS, **_DATABASE_COMMANDS}.items():
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
