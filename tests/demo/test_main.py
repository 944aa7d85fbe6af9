"""The command that opens the demo."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from ipykernel.ipkernel import IPythonKernel

from jupyter_agentbox.demo.__main__ import NOTEBOOKS, demo_notebook, options, prepare

if TYPE_CHECKING:
    from pathlib import Path


def test_the_demo_stays_in_its_directory(tmp_path: Path) -> None:
    environment = prepare(tmp_path / "demo")
    assert set(environment) == {"JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"}
    assert all(path.startswith(str(tmp_path)) for path in environment.values())


def test_the_demo_names_the_bundled_server_only(tmp_path: Path) -> None:
    prepare(tmp_path)
    assert json.loads((tmp_path / "config" / "mcp.json").read_text("utf-8")) == {
        "mcpServers": {"shop": {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}}
    }


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_second_demo_starts_with_fresh_notebooks(tmp_path: Path, name: str) -> None:
    prepare(tmp_path)
    copy = tmp_path / "notebooks" / name
    copy.write_text("edited", encoding="utf-8")
    prepare(tmp_path)
    fresh = json.loads(demo_notebook(name).read_text("utf-8"))
    assert json.loads(copy.read_text("utf-8"))["cells"] == fresh["cells"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebooks_say_what_the_kernel_will_say_of_its_language(tmp_path: Path, name: str) -> None:
    prepare(tmp_path)
    metadata = json.loads((tmp_path / "notebooks" / name).read_text("utf-8"))["metadata"]
    assert metadata["language_info"] == IPythonKernel.language_info


def test_extra_arguments_go_to_jupyterlab(tmp_path: Path) -> None:
    extra = ["--no-browser", "--port", "9999"]
    assert options(tmp_path, "http://127.0.0.1:1/v1", extra)[-3:] == extra
