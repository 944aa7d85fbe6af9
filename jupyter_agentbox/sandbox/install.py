"""``jupyter agentbox install-kernel``: installs the kernelspec of a sandboxed kernel."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import PROVISIONER, SandboxSettings
from jupyter_agentbox.exceptions import SandboxConfigError, SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import select_level

DEFAULT_NAME = "agentbox-sandbox"

#: What the launcher shows for the kernel, under the name that Jupyter looks for.
LOGO = Path(__file__).parent / "logo-svg.svg"


def kernelspec(python: str, *, display_name: str, config: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the ``kernel.json`` of a sandboxed kernel.

    Parameters
    ----------
    python : str
        The interpreter of an environment that has ipykernel.
    display_name : str
        What the launcher shows.
    config : dict, optional
        The provisioner's settings for this kernelspec.
    """
    return {
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": display_name,
        "language": "python",
        "metadata": {
            "debugger": True,
            "kernel_provisioner": {"provisioner_name": PROVISIONER, "config": config or {}},
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Install the kernelspec; return the exit status."""
    options = _parser().parse_args(arguments)
    python = shutil.which(options.python)
    if python is None:
        return _fail(f"there is no Python at `{options.python}`")
    version = _python_version(python)
    if version is None:
        return _fail(f"`{python}` has no ipykernel; run `{python} -m pip install ipykernel`")
    try:
        config = json.loads(options.config)
        settings = _settings(config)
    except ValueError as error:
        return _fail(f"the settings are not valid JSON: {error}")
    except SandboxConfigError as error:
        return _fail(str(error))
    spec = kernelspec(
        python, display_name=options.display_name or f"Python {version} (agentbox sandbox)", config=config
    )
    prefix = sys.prefix if options.sys_prefix else options.prefix
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "kernel.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
        shutil.copyfile(LOGO, Path(directory, LOGO.name))
        # A directory made by `tempfile` is 0700, and so would be the installed one.
        Path(directory).chmod(0o755)
        place = KernelSpecManager().install_kernel_spec(
            directory, options.name, user=prefix is None and not options.system, prefix=prefix
        )
    sys.stdout.write(f"Installed the kernel `{options.name}` in {place}\n")
    try:
        sys.stdout.write(f"Isolation on this machine: {_reached(settings).value}\n")
    except SandboxRefusedError as error:
        sys.stderr.write(f"The kernel cannot start on this machine: {error}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jupyter agentbox install-kernel", description="Install a kernel that runs in a sandbox."
    )
    parser.add_argument("--name", default=DEFAULT_NAME, help="the kernelspec's name (default: %(default)s)")
    parser.add_argument("--display-name", help="the name that the launcher shows")
    parser.add_argument(
        "--python", default=sys.executable, help="the Python interpreter, which must have ipykernel (default: this one)"
    )
    parser.add_argument(
        "--config", default="{}", metavar="JSON", help="the sandbox's settings for this kernel, as JSON"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="install for this user (the default)")
    place.add_argument("--sys-prefix", action="store_true", help="install in this Python environment")
    place.add_argument("--prefix", help="install below this prefix")
    place.add_argument("--system", action="store_true", help="install for all users of this machine")
    return parser


def _settings(config: Any) -> SandboxSettings:
    """Check the provisioner's settings, except those in a file, which is read when a kernel starts."""
    if isinstance(config, dict):
        config = {name: value for name, value in config.items() if name != "sandbox_config"}
    return SandboxSettings.from_mapping(config)


def _reached(settings: SandboxSettings) -> Isolation:
    return select_level(
        [Isolation(level) for level in settings.levels],
        bubblewrap=settings.bubblewrap,
        srt=settings.srt,
        network=bool(settings.allowed_domains or settings.private_domains),
    )


def _python_version(python: str) -> str | None:
    """Return the major version of a Python that has ipykernel, else ``None``."""
    # With `-c` the current directory is the first on the path: what lies there is not asked for.
    code = "import sys; sys.path[:] = filter(None, sys.path); import ipykernel; print(sys.version_info[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _fail(message: str) -> int:
    sys.stderr.write(message + "\n")
    return 1
