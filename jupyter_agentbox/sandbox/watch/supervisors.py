"""Ends a process and all that it started, however deep, even where no namespace would end with it.

Two supervisors stand between the server and the kernel, one above the other. Each is a child subreaper (``prctl(2)``):
it adopts processes below it that lose their parent. When the server dies, the upper supervisor is told; when the upper
one dies, the lower one is told; when the lower one dies, the upper one adopts what it supervised. The one that notices
ends everything: with one signal where Landlock lets a supervisor signal only what is below it (Linux 6.12), otherwise
process by process.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

from jupyter_agentbox.processes.reaper import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, descendants, prctl
from jupyter_agentbox.sandbox.inside.syscalls import keep_signals_below

#: What an upper supervisor hands down to the kernel.
PASSED_ON = {signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGCONT}
_ENDING = {signal.SIGTERM, signal.SIGHUP}


def supervised(parent: int, beside: Callable[[], None] | None = None) -> None:
    """Return in a new process of a new session, below two supervisors. Never returns in this one.

    Parameters
    ----------
    parent : int
        The process that this one must not outlive.
    beside : callable, optional
        What the lower supervisor also does, in a thread.
    """
    _supervise(parent)
    _supervise(os.getppid(), beside)
    os.setsid()


def _supervise(parent: int, beside: Callable[[], None] | None = None) -> None:
    """Fork; return in the child, and supervise it in this process until it or `parent` ends."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *PASSED_ON, *_ENDING})
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)  # it ended before this process asked to be told
    is_apart = _is_apart(parent)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    if beside is not None:
        threading.Thread(target=beside, daemon=True).start()
    status = 128 + signal.SIGTERM
    while True:
        number = signal.sigwaitinfo({signal.SIGCHLD, *PASSED_ON, *_ENDING}).si_signo
        if number in PASSED_ON:
            _send(child, number)
        elif number in _ENDING:
            break
        elif (ended := _reap().get(child)) is not None:
            code = os.waitstatus_to_exitcode(ended)
            status = code if code >= 0 else 128 - code
            break
    _end_all(is_apart=is_apart)
    os._exit(status)


def _is_apart(parent: int) -> bool:
    """Whether this process can signal what is below it and nothing else; found out by trying."""
    if not keep_signals_below():
        return False
    try:
        os.kill(parent, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        os._exit(1)  # it has just ended
    return False


def _send(child: int, number: int) -> None:
    """Signal the child's process group if it leads one, else the child: the lower supervisor or the kernel."""
    with suppress(OSError):
        if os.getpgid(child) == child:
            os.killpg(child, number)
        else:
            os.kill(child, number)


def _reap() -> dict[int, int]:
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            ended[process] = status
    return ended


def _end_all(*, is_apart: bool) -> None:
    """End all descendants."""
    while is_apart and _has_child():
        with suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        _await_end()
    while found := descendants(os.getpid()):
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none can start another meanwhile
            for process in found:
                with suppress(OSError):
                    os.kill(process, number)
        _await_end()


def _await_end() -> None:
    with suppress(ChildProcessError):
        os.waitpid(-1, 0)
    _reap()


def _has_child() -> bool:
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False
