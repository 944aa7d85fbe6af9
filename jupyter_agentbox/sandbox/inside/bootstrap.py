"""Runs in a sandboxed kernel's process, before the kernel: closes what only the process itself can close.

Started as ``python bootstrap.py SETTINGS MODULE [kernel's arguments]``. `SETTINGS` is ``-`` if namespaces already
confine the kernel, a JSON file ``{"proxy"}`` if they do and a proxy gives it a network, a JSON file ``{"parent",
"gate", "report", "rules", "opened", "limits"}`` for Landlock and seccomp, or a JSON file ``{"cwd", "same", "limits",
"writable", "sign"}`` in a sandbox that another program made. `MODULE` is ``ipykernel_launcher``, or a module whose
`application` returns the kernel's application, not yet initialized, and its arguments. If `MODULE` is ``--probe``, the
bootstrap closes everything and reports whether that holds.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

LIMITS = {"memory": "RLIMIT_AS", "file_size": "RLIMIT_FSIZE"}


def main(settings: str, module: str, arguments: list[str]) -> None:
    """Close what must be closed, then run the kernel."""
    found = {} if settings == "-" else json.loads(Path(settings).read_text(encoding="utf-8"))
    confined = found if "rules" in found else None
    if "proxy" in found:
        lead_out(found["proxy"])
    if "writable" in found:
        narrow(found)
    if confined is not None:
        confine(confined, supervised=module != "--probe")
    if module == "--probe":
        sys.stdout.write(json.dumps(probe()))
        return
    app, arguments = application(module, arguments)
    if confined is not None:
        adapt(app)
    with warnings.catch_warnings():
        if confined is not None:
            warnings.filterwarnings("ignore", "Couldn't bind IOPub Pipe")  # TCP is closed
            app.init_path = lambda: None  # nothing of the work directory is imported while sockets can be made
        app.initialize(arguments)
    if confined is not None:
        wait_for(Path(f"{app.ip}-{app.hb_port}"))
        close_sockets(own_signals_only=confined["version"] < 6)
        type(app).init_path(app)
        if hasattr(app.kernel, "_process_children"):
            app.kernel._process_children = list  # at its end; `/proc` is closed, and the supervisors end them
    app.start()


def narrow(settings: dict[str, Any]) -> None:
    """Add what fits into a sandbox that another program made: limits, a process group, and on Linux two more walls.

    Without Landlock, a process that is also root outside could write to `/proc`.
    """
    os.chdir(settings["cwd"])
    for path, identity in settings["same"].items():
        found = Path(path).stat()
        if [found.st_dev, found.st_ino] != identity:
            sys.exit(f"`{path}` was replaced while the kernel was starting")
    limit(settings["limits"])
    if settings["writable"] is not None:
        with suppress(PermissionError):  # it leads one; elsewhere, who ends the kernel knows its group only
            os.setsid()
        from jupyter_agentbox.sandbox.inside import seccomp, syscalls

        if syscalls.landlock_version() >= 1:
            writable = [(path, syscalls.WRITE) for path in settings["writable"]]
            devices = ("/dev", syscalls.WRITE | syscalls.DEVICE)
            syscalls.restrict_files([("/", syscalls.READ), devices, *writable], files_only=True)
        syscalls.drop_capabilities()
        # srt leaves the machine's shared objects to what it holds.
        syscalls.filter_calls(seccomp.assemble(sockets=seccomp.Sockets.LOCAL, shared_objects=False))
    Path(settings["sign"]).touch()


def limit(limits: dict[str, int | None]) -> None:
    """Set the resource limits of this process and of all that it starts."""
    import resource

    for name, value in limits.items():
        if value is not None:
            resource.setrlimit(getattr(resource, LIMITS[name]), (value, value))


def lead_out(proxy: str) -> None:
    """Make 127.0.0.1 of this network lead to the proxy's socket."""
    from jupyter_agentbox.sandbox.inside import port_forwarder

    port_forwarder.start(proxy)


def application(module: str, arguments: list[str]) -> tuple[Any, list[str]]:
    """Return the kernel's application and its arguments."""
    if module != "ipykernel_launcher":
        made: tuple[Any, list[str]] = import_module(module).application(arguments)
        return made
    from ipykernel.kernelapp import IPKernelApp

    return IPKernelApp.instance(), arguments


def adapt(app: Any) -> None:
    """Make IPython work without what is closed.

    It is the class that is changed, because the approval of commands replaces the method of the instance.
    """
    modules: dict[str, Any] = sys.modules
    modules["debugpy"] = None  # makes its import fail: it takes a fifth of a kernel's start, and could not listen
    import ipykernel.debugger

    del modules["debugpy"]
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.zmqshell import ZMQInteractiveShell

    shell: Any = ZMQInteractiveShell
    shell.system = shell.system_raw  # `!program` without a terminal: those of others could be written too
    app.outstream_class = "jupyter_agentbox.kernel_app.streams.WatchedStream"  # or what it prints may miss its cell
    debugger: Any = ipykernel.debugger
    debugger._is_debugpy_available = False  # front ends then offer none; one that was begun would never answer
    kernel: Any = IPythonKernel
    kernel.do_debug_request = refuse_debugger


async def refuse_debugger(_kernel: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Say why there is no debugger."""
    return {
        "type": "response",
        "request_seq": request.get("seq"),
        "command": request.get("command"),
        "success": False,
        "message": "no debugger in this sandbox: it listens on TCP, which is closed where there are no namespaces",
    }


def confine(settings: dict[str, Any], *, supervised: bool) -> None:
    """Confine this process by Landlock, and by seccomp as far as it goes before the kernel's channels are open."""
    import socket

    from jupyter_agentbox.sandbox.inside import seccomp, syscalls
    from jupyter_agentbox.sandbox.watch import file_attributes, supervisors

    rules = [(str(path), int(rights)) for path, rights in settings["rules"]]
    link, theirs = socket.socketpair()
    if supervised:
        writable = [path for path, rights in rules if rights & syscalls.MAKE_REG]
        wait_at(settings["gate"])
        supervisors.supervised(settings["parent"], lambda: file_attributes.serve(theirs, writable))
        os.write(settings["report"], b"%d\n" % os.getpid())  # whoever interrupts it needs no supervisor for that
    theirs.close()
    limit(settings["limits"])
    opened = settings.get("opened", {})
    try:
        settings["version"] = syscalls.restrict_files([*rules, ("/proc/self", syscalls.READ)], opened=opened)
        syscalls.drop_capabilities()
        if supervised:
            file_attributes.hand_over(link)
        link.close()
        syscalls.filter_calls(seccomp.assemble(sockets=seccomp.Sockets.UNIX, namespaces=False))
    except OSError as error:
        if supervised:
            os.write(settings["report"], f"!{error}".encode())
        raise
    for fd in opened.values():
        os.close(fd)
    if supervised:
        os.write(settings["report"], b"held\n")
        os.close(settings["report"])


def close_sockets(*, own_signals_only: bool) -> None:
    """Allow no further socket, in any thread."""
    from jupyter_agentbox.sandbox.inside import seccomp, syscalls

    program = seccomp.assemble(
        sockets=seccomp.Sockets.NONE, namespaces=False, own_signals_only=own_signals_only
    )  # fmt: skip
    syscalls.filter_calls(program)


def wait_at(gate: int) -> None:
    """Wait until this process is in the group that counts its processes; exit if the server has ended before."""
    if not os.read(gate, 1):
        os._exit(1)
    os.close(gate)


def wait_for(path: Path) -> None:
    """Wait until the heartbeat's thread has opened its socket, the only one that `initialize` does not wait for."""
    limit = time.monotonic() + 10
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.001)


def probe() -> dict[str, bool]:
    """Attempt what must fail, and report what did not."""
    import socket

    close_sockets(own_signals_only=False)
    return {
        "files": not _works(lambda: next(Path("/").iterdir())),
        "processes": not _works(lambda: Path("/proc/1/cmdline").read_bytes()),
        "sockets": not _works(lambda: socket.socket(socket.AF_UNIX).close()),
    }


def _works(attempt: Any) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    # Run by its path: its directory must not be where modules are looked for, but its package must be; last, so that
    # a package that the kernel's environment has itself comes first.
    if sys.path[0] == str(Path(__file__).parent):
        del sys.path[0]
    sys.path.append(str(Path(__file__).parents[3]))
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
