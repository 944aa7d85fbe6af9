"""Shell commands that need approval, and a guard that directs other ways of starting programs to them.

The guard is against mistakes: determined code can bypass it (C extensions, a fork). The wall is a sandbox.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from jupyter_agentbox.protocol.shell import SHELL_MAGIC_TOOL, SHELL_SERVER, SHELL_TOOL

from . import runtime

#: Audit events (https://docs.python.org/3/library/audit_events.html) for starting a program.
_STARTS: Final = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile", "pty.spawn"})
#: Refused by name: the first eight fork and fail in the child, where nobody sees it; the events of the others do not
#: contain their names.
_NAMED: Final = (
    *("spawnv", "spawnve", "spawnvp", "spawnvpe"),
    *("spawnl", "spawnle", "spawnlp", "spawnlpe"),
    *("execv", "execve", "execvp", "execvpe"),
    *("execl", "execle", "execlp", "execlpe", "posix_spawnp"),
)
#: Programs whose cells are shown unchanged; others are shown with a ``#!`` line.
_PLAIN: Final = frozenset({"bash", "sh"})

#: Number of approved commands being started, for the whole process: a script's program starts in another thread.
_allowed = 0


def ask_before_commands(shell: Any) -> None:
    """Make ``!``, ``!!``, ``%sx``, ``%system``, ``%%bash`` and other shell commands require approval.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    """
    shell.system = _asking_system(shell, shell.system)
    shell.getoutput = _asking_getoutput(shell, shell.getoutput)
    shell.find_cell_magic("script")  # newer IPython versions load it lazily
    scripts = shell.magics_manager.registry.get("ScriptMagics")
    if scripts is not None:
        scripts.shebang = _asking_script(scripts.shebang)
        shell.magics_manager.magics["cell"]["script"] = scripts.shebang


def refuse_other_starts() -> None:
    """Make all other ways of starting a program raise `RuntimeError`, for the rest of the process's life."""
    sys.addaudithook(_on_audit)
    for name in _NAMED:
        if hasattr(os, name):
            setattr(os, name, _refusing(name, getattr(os, name)))


def _asking_system(shell: Any, run: Callable[[str], None]) -> Callable[[str], None]:
    @functools.wraps(run)
    def system(cmd: str) -> None:
        approved = _ask(SHELL_TOOL, shell.var_expand(cmd, depth=1))
        with _starting():
            _as_approved(shell, run)(approved)

    return system


def _asking_getoutput(shell: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def getoutput(cmd: str, split: bool = True, depth: int = 0) -> Any:
        approved = _ask(SHELL_TOOL, shell.var_expand(cmd, depth=depth + 1))
        with _starting():
            return _as_approved(shell, run)(approved, split=split)

    return getoutput


def _asking_script(run: Callable[[str, str], None]) -> Callable[[str, str], None]:
    @functools.wraps(run)
    def shebang(line: str, cell: str) -> None:
        head = "" if os.path.basename(line.strip()) in _PLAIN else f"#!{line}\n"  # noqa: PTH119  # a command, no path
        approved = _ask(SHELL_MAGIC_TOOL, head + cell)
        with _starting():
            run(line, approved.removeprefix(head))

    return shebang


def _ask(tool: str, command: str) -> str:
    """Request approval of a command and return it, as edited."""
    result = runtime.link().call(SHELL_SERVER, tool, {"cmd": command})
    structured = result.structured
    return str(structured["cmd"]) if isinstance(structured, dict) else command


@contextmanager
def _starting() -> Iterator[None]:
    global _allowed
    _allowed += 1
    try:
        yield
    finally:
        _allowed -= 1


class _Expanded:
    """Proxy of the shell without variable expansion, which took place before the command was shown."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shell, name)

    @staticmethod
    def var_expand(cmd: str, *_args: Any, **_options: Any) -> str:
        return cmd


def _as_approved(shell: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the shell's method for running commands, without expansion: the approved text is what runs."""
    function = getattr(run, "__func__", None)
    # A replacement of the method has no shell variables to expand.
    return run if function is None else functools.partial(function, _Expanded(shell))


def _on_audit(event: str, _args: tuple[Any, ...]) -> None:
    if event in _STARTS and not _allowed:
        raise _refusal("subprocess" if event == "subprocess.Popen" else f"{event}()")


def _refusing(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def spawn(*args: Any, **options: Any) -> Any:
        if not _allowed:
            raise _refusal(f"os.{name}()")
        return run(*args, **options)

    return spawn


def _refusal(what: str) -> RuntimeError:
    return RuntimeError(
        f"Direct {what} calls are not allowed here. Use `!command`, `x = !command` or a `%%bash` cell,"
        " which can be approved."
    )
