from __future__ import annotations

import pytest

from jupyter_agentbox.core.notebook_runners import notebook_runner


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        (["/opt/bin/python3.11", "/opt/bin/jupyter-nbconvert", "--execute", "a.ipynb"], "jupyter-nbconvert"),
        (["python", "-W", "error", "-Xutf8", "-m", "nbconvert", "--execute"], "nbconvert"),
        (["python3", "-m", "nbgrader.apps", "autograde"], "nbgrader"),
        (["/home/ada/.local/bin/papermill", "in.ipynb"], "papermill"),
        (["C:/Scripts/jupyter-execute.exe", "a.ipynb"], "jupyter-execute"),
        (["python.exe", "C:/Scripts/jupyter-nbconvert-script.py"], "jupyter-nbconvert"),
        (["python", "-X", "dev", "/opt/bin/jupyter-run"], "jupyter-run"),
    ],
)
def test_programs_that_run_notebooks_without_a_server_are_known(command: list[str], runner: str) -> None:
    assert notebook_runner(command) == runner


@pytest.mark.parametrize(
    "command",
    [
        [],
        [""],
        ["python"],
        ["python", "-m"],
        ["python", "-c", "import nbconvert", "papermill"],
        ["python", "/opt/bin/jupyter-lab", "nbconvert"],
        ["python", "/opt/bin/jupyterhub-singleuser", "--port=1"],
        ["python", "-m", "jupyter_server"],
        ["/usr/bin/run", "nbconvert"],
        ["python", "console.py"],
        ["bash", "-c", "jupyter-nbconvert"],
    ],
)
def test_what_may_be_a_server_is_not_taken_for_such_a_program(command: list[str]) -> None:
    assert notebook_runner(command) is None
