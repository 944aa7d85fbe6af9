"""Open JupyterLab on the demo notebooks: ``python -m jupyter_agentbox.demo``.

Everything is in one temporary directory: copies of the notebooks, an ``mcp.json`` with the bundled shop, and Jupyter's
configuration, data and runtime files. The user's own Jupyter settings do not change, and nothing is fetched from the
network: a script in this process replaces the language model.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

from jupyter_agentbox.demo.script import MODEL, scripted_model

HERE = Path(__file__).parent

#: The notebooks; JupyterLab opens the first.
NOTEBOOKS = ("demo.ipynb", "agent.ipynb")

#: The directories that may contain them: in an installed package, and in the source tree.
PLACES = (HERE, HERE.parents[1] / "examples")

#: What a kernel says of its language. JupyterLab writes it into a notebook, which then has unsaved changes.
LANGUAGE: dict[str, object] = {
    "codemirror_mode": {"name": "ipython", "version": sys.version_info.major},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": f"ipython{sys.version_info.major}",
    "version": sys.version.split(maxsplit=1)[0],
}

#: Options that keep the demo off the network.
OFFLINE = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)

#: JupyterLab settings, by plug-in: it does not ask whether to fetch news.
LAB_SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}


def demo_notebook(name: str = NOTEBOOKS[0]) -> Path:
    """Return a notebook that comes with this installation.

    Raises
    ------
    FileNotFoundError
        If the installation does not include it.
    """
    for place in PLACES:
        if (place / name).exists():
            return place / name
    raise FileNotFoundError(f"the demo notebook `{name}` is in none of {', '.join(map(str, PLACES))}")


def prepare(directory: Path) -> dict[str, str]:
    """Write the demo's files.

    Parameters
    ----------
    directory : Path
        Created if missing. Notebooks of an earlier demo are replaced.

    Returns
    -------
    dict
        Environment variables that make Jupyter use only this directory.
    """
    places = {name: directory / name for name in ("notebooks", "config", "data", "runtime", "ipython")}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    for name in NOTEBOOKS:
        notebook = json.loads(demo_notebook(name).read_text(encoding="utf-8"))
        notebook["metadata"]["language_info"] = LANGUAGE
        _write_json(places["notebooks"] / name, notebook)
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


def options(directory: Path, model_url: str, arguments: list[str]) -> list[str]:
    """Return the options with which JupyterLab shows the demo.

    Parameters
    ----------
    directory : Path
        The directory that `prepare` wrote to.
    model_url : str
        The address of the model that agents ask.
    arguments : list of str
        More options.
    """
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [
        f"--ServerApp.root_dir={directory / 'notebooks'}",
        "--LabApp.default_url=/lab/tree/demo.ipynb",
        f"--AgentBoxApp.agent_model={MODEL}",
        f"--AgentBoxApp.agent_base_url={model_url}",
        *OFFLINE,
        *as_root,
        *arguments,
    ]


def main() -> None:
    """Prepare the demo and run JupyterLab in this process."""
    parser = argparse.ArgumentParser(
        prog="python -m jupyter_agentbox.demo",
        description="Open JupyterLab on the demo notebooks. Arguments that are not listed here go to JupyterLab.",
    )
    parser.add_argument("--directory", type=Path, help="where the demo lives (default: a new temporary directory)")
    known, arguments = parser.parse_known_args()
    directory: Path = (known.directory or Path(tempfile.mkdtemp(prefix="agentbox-demo-"))).resolve()
    os.environ.update(prepare(directory))  # before any part of Jupyter is imported
    sys.stderr.write(f"The demo is in {directory}. Ctrl-C ends it.\n")
    with scripted_model() as model:
        sys.argv[1:] = options(directory, model.base_url, arguments)
        runpy.run_module("jupyterlab", run_name="__main__")


if __name__ == "__main__":
    main()
