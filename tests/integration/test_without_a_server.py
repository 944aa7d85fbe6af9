"""Notebooks that are run with nobody there: their calls fail, and none waits for a server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import select_level

from .conftest import TIMEOUT
from .test_sandbox import install

CALLS = """
from jupyter_agentbox.exceptions import NoServerError
from jupyter_agentbox.kernel import runtime

try:
    runtime.link().call("shop", "list_orders", {})
except NoServerError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("kernel", "why"),
    [("python3", "`nbconvert` started this kernel"), ("sandboxed", "`JUPYTER_AGENTBOX_NO_SERVER` is set")],
)
def test_calls_of_a_notebook_that_nbconvert_runs_fail_at_once(kernel: str, why: str, tmp_path: Path) -> None:
    """Caught: a wait of ten seconds for a server that cannot be there, whose error says that none has answered.

    A sandboxed kernel does not see its parent.
    """
    if kernel == "sandboxed":
        try:
            select_level(SANDBOX_LEVELS)
        except SandboxRefusedError as refusal:
            pytest.skip(str(refusal))
        install(tmp_path, kernel)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CALLS)])
    nbformat.write(notebook, tmp_path / "in.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "in.ipynb", "--output", "out.ipynb"]
    environment = {**os.environ, "JUPYTER_PATH": str(tmp_path / "data")}

    subprocess.run(
        [*command, f"--ExecutePreprocessor.kernel_name={kernel}"],
        cwd=tmp_path, env=environment, check=True, timeout=TIMEOUT * 2, capture_output=True,
    )  # fmt: skip

    [output] = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[0].outputs
    assert f"no agentbox server is there ({why}), so nobody could approve and nothing ran" in output.text
