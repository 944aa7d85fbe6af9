"""A small process between Jupyter and an MCP server's command, which ends the command's process tree when Jupyter ends.

Run as ``python -I -S reaper.py FD``, standard library only. `FD` is a socket whose other end only the Jupyter server
holds. It sends one `message`: what to start, and how. The command inherits `pass_fds` and this process's standard
input, output and error, so nothing that it reads or writes passes through here. Nothing more is sent until the socket
closes, which the operating system does however Jupyter ends, even by SIGKILL. Then, or when the command ends, all
descendants are sent SIGTERM and, `grace` seconds later, SIGKILL.

On Linux this process is a child subreaper (``prctl(2)``): a daemon that the command forked remains its descendant.
Elsewhere, it ends the command's process group. It exits with the command's status, 128 + n for signal n.

The reaper must start quickly, so this file imports nothing from the package. Other modules that end or count processes
import `prctl`, `process_table` and `descendants` from here.
"""

from __future__ import annotations

import errno
import marshal
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_EXECUTE = 126
NOT_FOUND = 127
#: Size of a message's length field, in bytes.
_LENGTH = 4


def prctl(option: int, value: int) -> None:
    """Call ``prctl(2)``.

    Raises
    ------
    OSError
        If Linux refuses it, or this is another system.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    import ctypes  # noqa: PLC0415  # costs milliseconds, so not where it is of no use

    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), 0, 0, 0) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def try_prctl(option: int, value: int) -> bool:
    """Call ``prctl(2)``; return whether it succeeded."""
    try:
        prctl(option, value)
    except (OSError, AttributeError):  # Linux without it
        return False
    return True


def message(
    argv: list[str], env: dict[str, str], cwd: str | None, pass_fds: list[int], grace: float, memory: int | None = None
) -> bytes:
    """Return the message to a reaper, from a process with the same interpreter.

    `memory` is the maximum size of data of each of the command's processes, in bytes (``RLIMIT_DATA``).

    It is not JSON, because importing that module takes a fifth of the time in which a reaper starts.
    """
    texts = {str(name): str(value) for name, value in env.items()}  # subclasses of `str` cannot be serialized
    data = marshal.dumps(([str(part) for part in argv], texts, cwd, pass_fds, grace, memory))
    return len(data).to_bytes(_LENGTH, "big") + data


def read(fd: int, count: int) -> bytes:
    """Read `count` bytes, or fewer at the end."""
    data = b""
    while len(data) < count and (part := os.read(fd, count - len(data))):
        data += part
    return data


def start(argv: list[str], env: dict[str, str], cwd: str | None, memory: int | None) -> int:
    """Fork and run the command in its own session; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        try_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # in case the reaper itself is killed
        if memory is not None:
            limit_data(memory)
        if cwd:
            os.chdir(cwd)
        os.execvpe(argv[0], argv, env)  # noqa: S606
    except OSError as error:
        name = cwd if error.filename == cwd and cwd else argv[0]
        os.write(2, f"cannot start `{name}`: {os.strerror(error.errno or 0)}\n".encode(errors="replace"))
        os._exit(NOT_FOUND if error.errno == errno.ENOENT else CANNOT_EXECUTE)
    finally:
        os._exit(CANNOT_EXECUTE)


def limit_data(memory: int) -> None:
    """Limit the data size of this process, and of each that it starts, unless a lower limit applies."""
    import resource  # noqa: PLC0415  # only here: the reaper must start quickly

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory if most == resource.RLIM_INFINITY else min(memory, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def process_table() -> dict[int, tuple[int, int]]:
    """Return the parent and the number of threads of each process in ``/proc``.

    Zombies are included: they count towards the user's limit.
    """
    table: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  # pathlib would double the start-up time, and the cost of a count
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                    # the second field is the command's name in parentheses, which may contain any characters
                    fields = file.read().rpartition(b")")[2].split()
                    table[int(name)] = int(fields[1]), max(1, int(fields[17]))
            except (OSError, ValueError, IndexError):
                continue
    return table


def descendants(process: int, table: dict[int, tuple[int, int]] | None = None) -> list[int]:
    """Return the ids of all descendants of `process`; `table` is an earlier `process_table`."""
    children: dict[int, list[int]] = {}
    for child, (parent, _) in (process_table() if table is None else table).items():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    level = [process]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


class Tree:
    """The command and its descendants: which of them remain, and how the command ended."""

    def __init__(self, pid: int, *, is_subreaper: bool) -> None:
        self.pid = pid
        self.is_subreaper = is_subreaper
        self.status: int | None = None
        self.is_empty = False

    def reap(self) -> None:
        """Reap all children that have ended."""
        while not self.is_empty:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_empty = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code

    def send(self, number: int) -> None:
        """Send a signal to all of them."""
        for pid in descendants(os.getpid()) if self.is_subreaper else [-self.pid]:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue

    def watch(self, lifeline: int, wakeups: int) -> None:
        """Wait until the command has ended, the socket is closed, or a signal asks this process to end."""
        poller = select.poll()
        poller.register(lifeline, select.POLLIN | select.POLLHUP)
        poller.register(wakeups, select.POLLIN)
        while self.status is None:
            ready = {fd for fd, _ in poller.poll()}
            if wakeups in ready and any(number != signal.SIGCHLD for number in os.read(wakeups, 512)):
                return
            if lifeline in ready:
                return
            self.reap()

    def end(self, wakeups: int, grace: float) -> None:
        """End the remaining processes, gently for `grace` seconds."""
        self.send(signal.SIGTERM)
        deadline = time.monotonic() + grace
        self.reap()
        while not self.is_empty:
            left = deadline - time.monotonic()
            if left <= 0:
                self.send(signal.SIGKILL)
                left = 0.02
            if select.select([wakeups], [], [], left)[0]:
                os.read(wakeups, 512)
            self.reap()
        if not self.is_subreaper:
            self.send(signal.SIGKILL)  # the process group may outlive its leader


def main() -> int:
    """Start the command, wait for it, and end what remains of it."""
    lifeline = int(sys.argv[1])
    wakeups, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_inheritable(lifeline, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    # without /proc, adopted processes could not be found
    is_subreaper = os.access("/proc/self/stat", os.R_OK) and try_prctl(PR_SET_CHILD_SUBREAPER, 1)
    length = int.from_bytes(read(lifeline, _LENGTH), "big")
    data = read(lifeline, length)
    if not length or len(data) < length:
        return CANNOT_EXECUTE  # Jupyter ended before sending a message
    argv, env, cwd, pass_fds, grace, memory = marshal.loads(data)  # noqa: S302  # of the process that started this one
    tree = Tree(start(argv, env, cwd, memory), is_subreaper=is_subreaper)
    # only the command may hold the pipes and sockets: when it closes them, Jupyter must notice
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in pass_fds:
        os.close(fd)
    tree.watch(lifeline, wakeups)
    tree.end(wakeups, grace)
    return CANNOT_EXECUTE if tree.status is None else tree.status


if __name__ == "__main__":
    os._exit(main())
