from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.kernel.server_absence import server_absence

NBCONVERT = b"/opt/bin/python3\0/opt/bin/jupyter-nbconvert\0--execute\0"


@pytest.fixture
def processes(tmp_path: Path) -> Path:
    for number, command in {"41": NBCONVERT, "42": b"/opt/bin/python3\0/opt/bin/jupyter-lab\0"}.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "cmdline").write_bytes(command)
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"JPY_PARENT_PID": "41"}, "`jupyter-nbconvert` started this kernel"),
        ({"JUPYTER_AGENTBOX_NO_SERVER": "1", "JPY_PARENT_PID": "42"}, "`JUPYTER_AGENTBOX_NO_SERVER` is set"),
        ({"JUPYTER_AGENTBOX_NO_SERVER": "0", "JPY_PARENT_PID": "42"}, ""),
        ({"JPY_PARENT_PID": "43"}, ""),
        ({"JPY_PARENT_PID": "../41"}, ""),
        ({}, ""),
    ],
)
def test_only_what_is_known_for_sure_counts(processes: Path, environment: dict[str, str], why: str) -> None:
    assert server_absence(environment, processes) == why
