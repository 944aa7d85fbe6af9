"""Open JupyterLab on the demo notebook: ``python -m jupyter_agentbox.demo``.

Everything happens in one directory that can be thrown away: a copy of the notebook, an ``mcp.json`` that names the
bundled shop, and Jupyter's own configuration, data and runtime files. The user's Jupyter is not touched, and nothing is
fetched from the network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

#: The notebook in an installed package, and in the source tree.
NOTEBOOKS = (HERE / "demo.ipynb", HERE.parents[1] / "examples" / "demo.ipynb")

#: Nothing in the demo asks the network.
OFFLINE = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)

#: JupyterLab settings, by plug-in: it does not ask whether to fetch news.
LAB_SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}


def demo_notebook() -> Path:
    """Return the notebook that comes with this installation.

    Raises
    ------
    FileNotFoundError
        If it was left out of the installation.
    """
    for notebook in NOTEBOOKS:
        if notebook.exists():
            return notebook
    raise FileNotFoundError(f"the demo notebook is in none of {', '.join(map(str, NOTEBOOKS))}")


def prepare(directory: Path) -> dict[str, str]:
    """Write the demo's files.

    Parameters
    ----------
    directory : Path
        Is made if it is missing. An earlier demo's notebook is replaced.

    Returns
    -------
    dict
        Environment variables that keep Jupyter inside the directory.
    """
    places = {name: directory / name for name in ("notebooks", "config", "data", "runtime", "ipython")}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    shutil.copy(demo_notebook(), places["notebooks"] / "demo.ipynb")
    shop = {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}
    _write_json(places["config"] / "mcp.json", {"mcpServers": {"shop": shop}})
    for plugin, settings in LAB_SETTINGS.items():
        _write_json(places["config"] / "lab" / "user-settings" / f"{plugin}.jupyterlab-settings", settings)
    return {
        "JUPYTER_CONFIG_DIR": str(places["config"]),
        "JUPYTER_DATA_DIR": str(places["data"]),
        "JUPYTER_RUNTIME_DIR": str(places["runtime"]),
        "IPYTHONDIR": str(places["ipython"]),
    }


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def command(directory: Path, arguments: list[str]) -> list[str]:
    """Return the command that starts JupyterLab on the demo."""
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={directory / 'notebooks'}",
        "--LabApp.default_url=/lab/tree/demo.ipynb",
        *OFFLINE,
        *as_root,
        *arguments,
    ]


def main() -> None:
    """Prepare the demo and become JupyterLab."""
    parser = argparse.ArgumentParser(
        prog="python -m jupyter_agentbox.demo",
        description="Open JupyterLab on the demo notebook. Arguments that are not listed here go to JupyterLab.",
    )
    parser.add_argument("--directory", type=Path, help="where the demo lives (default: a new temporary directory)")
    options, arguments = parser.parse_known_args()
    directory: Path = (options.directory or Path(tempfile.mkdtemp(prefix="agentbox-demo-"))).resolve()
    environment = prepare(directory)
    sys.stderr.write(f"The demo is in {directory}. Ctrl-C ends it.\n")
    start = command(directory, arguments)
    os.execve(start[0], start, {**os.environ, **environment})  # noqa: S606 - this process becomes JupyterLab


if __name__ == "__main__":
    main()
