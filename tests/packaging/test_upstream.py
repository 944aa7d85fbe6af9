"""The guard of outputs replaces parts of JupyterLab and ipywidgets that neither promises to keep."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "labextension" / "src" / "features" / "outputs" / "upstream.ts"
MOVED = "moved: read outputs/upstream.ts beside it, run tests/browser/test_sandboxed_outputs.py, then set TESTED"


def guard_version(name: str) -> str:
    """Return the version that the guard says it was tested with."""
    found = re.search(rf"{name}: '([^']+)'", SOURCE.read_text("utf-8"))
    assert found
    return found[1]


@pytest.mark.parametrize("package", ["jupyterlab", "notebook"])
def test_guard_was_tested_with_the_application_that_is_installed(package: str) -> None:
    assert version(package).startswith(guard_version(package) + "."), f"{package} {MOVED}"


def test_guard_was_tested_with_the_widget_manager_that_is_installed() -> None:
    places = (Path(path, "@jupyter-widgets", "jupyterlab-manager") for path in jupyter_path("labextensions"))
    manifest = next(path for place in places if (path := place / "package.json").exists())
    found = json.loads(manifest.read_text("utf-8"))["version"]
    assert found.startswith(guard_version("widgetManager") + "."), f"ipywidgets {MOVED}"


@pytest.mark.parametrize(("package", "name"), [("jupyterlab", "oldestJupyterlab"), ("notebook", "oldestNotebook")])
def test_the_oldest_application_of_the_guard_is_that_of_the_tests_and_of_the_package(package: str, name: str) -> None:
    oldest = guard_version(name)
    assert f"'{package}=={oldest}.*'" in (ROOT / "Makefile").read_text("utf-8")
    if package == "jupyterlab":
        assert f'"jupyterlab>={oldest}' in (ROOT / "pyproject.toml").read_text("utf-8")
