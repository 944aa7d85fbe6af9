"""The server process of a `KernelGateway`.

Run as ``python -P gateway_server.py SETTINGS``, where `SETTINGS` is a JSON file that only this user can read.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve()
_LAUNCHER = _HERE.parents[1] / "kernel_app" / "launcher.py"


def main() -> None:
    """Serve until a signal arrives."""
    settings: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        import jupyter_agentbox  # noqa: F401, PLC0415
    except ImportError:  # run from its sources
        sys.path.append(str(_HERE.parents[2]))
    if settings["sandbox"] is not None:
        _check_sandbox(settings["sandbox"])
    specs = _write_kernel_spec(Path(sys.argv[1]).parent, settings)
    config_dir = _config_dir()
    # Only what is set here: the user's pages and extensions have no place in it.
    os.environ["JUPYTER_NO_CONFIG"] = "1"
    # Without configuration, Jupyter makes a temporary directory for it and never removes that: this one is removed.
    tempfile.tempdir = str(Path(sys.argv[1]).parent)

    # No schema here has a field for an internationalized address, and the grammar of those takes a second to compile.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # makes its import fail

    import zmq  # noqa: PLC0415  # after the environment says what Jupyter may read
    from jupyter_server.serverapp import ServerApp  # noqa: PLC0415

    app = ServerApp.instance()
    app.update_config(_config(settings, config_dir))
    app.initialize(argv=[])
    tempfile.tempdir = None
    os.environ.pop("JUPYTER_NO_CONFIG")  # kernels shall find the user's configuration
    manager: Any = app.kernel_spec_manager
    # With sandboxes there are no other kernels: one without could be started by its name.
    manager.kernel_dirs = [str(specs), *([] if settings["sandbox"] is not None else manager.kernel_dirs)]
    app.kernel_manager.context.setsockopt(zmq.RCVHWM, 0)  # drop no output, however slow a client reads
    _send_at_once()
    app.start()


def _send_at_once() -> None:
    """Have the websockets send small messages at once; each would wait 40 ms for the last one's acknowledgement."""
    from jupyter_server.services.kernels.websocket import KernelWebsocketHandler  # noqa: PLC0415  # as above

    open_as_before = KernelWebsocketHandler.open

    async def open_without_delay(self: KernelWebsocketHandler, kernel_id: str) -> None:
        self.set_nodelay(True)
        await open_as_before(self, kernel_id)

    KernelWebsocketHandler.open = open_without_delay  # type: ignore[method-assign]  # there is no setting for it


def _config_dir() -> str:
    from jupyter_core.paths import jupyter_config_dir  # noqa: PLC0415  # which reads the environment

    return jupyter_config_dir()


def _config(settings: dict[str, Any], config_dir: str) -> Any:
    from traitlets.config import Config  # noqa: PLC0415  # as above

    return Config(
        {
            "ServerApp": {
                "ip": settings["ip"],
                "port": settings["port"],
                "port_retries": 0,
                "root_dir": settings["root_dir"],
                "log_level": settings["log_level"],
                "open_browser": False,
                "allow_root": True,
                "jpserver_extensions": {"jupyter_agentbox": True},
                "terminals_enabled": settings["sandbox"] is None,
            },
            "KernelSpecManager": {"ensure_native_kernel": settings["sandbox"] is None},
            "IdentityProvider": {"token": settings["token"]},
            "AgentBoxApp": {"mcp_config_path": str(Path(config_dir) / "mcp.json")},
            "KernelManager": {"transport": _transport()},
            # Named by whoever owns the variables: those that look like secrets pass, too.
            "SandboxProvisioner": {"environment": (settings["sandbox"] or {}).get("environment", [])},
            # The limits protect a page from a cell's output. Here every output counts.
            "ZMQChannelsWebsocketConnection": {"limit_rate": False},
        }
    )


def _transport() -> str:
    from jupyter_core.paths import jupyter_runtime_dir  # noqa: PLC0415  # as above

    # The sockets' paths have 107 characters at most (unix(7)).
    return "ipc" if os.name == "posix" and len(jupyter_runtime_dir()) < 50 else "tcp"


def _check_sandbox(sandbox: dict[str, Any]) -> None:
    """Exit with a message for the gateway's caller if no sandbox can be made here."""
    from jupyter_agentbox.core.isolation import Isolation  # noqa: PLC0415  # may be run from its sources
    from jupyter_agentbox.exceptions import SandboxRefusedError  # noqa: PLC0415  # as above
    from jupyter_agentbox.headless.gateway import GATEWAY_REFUSED, REFUSAL  # noqa: PLC0415  # as above
    from jupyter_agentbox.sandbox.server.probes import select_level  # noqa: PLC0415  # as above

    try:
        select_level(
            [Isolation(level) for level in sandbox["levels"]],
            bubblewrap=sandbox["bubblewrap"],
            srt=sandbox["srt"],
            network=bool(sandbox["allowed_domains"] or sandbox["private_domains"]),
        )
    except SandboxRefusedError as error:
        sys.stderr.write(f"{REFUSAL}{error}\n")
        sys.exit(GATEWAY_REFUSED)


def _write_kernel_spec(directory: Path, settings: dict[str, Any]) -> Path:
    """Write a kernelspec whose kernels drop no messages; return the directory of kernelspecs."""
    folder = directory / "kernels" / "python3"
    folder.mkdir(parents=True)
    sandbox = settings["sandbox"]
    program = [str(_LAUNCHER)] if sandbox is None else ["-m", "jupyter_agentbox.kernel_app.launcher"]
    spec: dict[str, Any] = {
        "argv": [sys.executable, "-P", *program, "{connection_file}", "{}"],
        "display_name": "Python 3",
        "language": "python",
        "env": {"TERM": "dumb", "NO_COLOR": "1", **settings["kernel_env"]},
    }
    if sandbox is not None:
        # The directory has the server's token.
        config = {**sandbox, "hidden": [*sandbox["hidden"], str(directory)]}
        spec["metadata"] = {"kernel_provisioner": {"provisioner_name": "agentbox-sandbox", "config": config}}
    (folder / "kernel.json").write_text(json.dumps(spec))
    return folder.parent


if __name__ == "__main__":
    main()
