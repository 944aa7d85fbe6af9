from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_agentbox import load_ipython_extension, unload_ipython_extension
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.extension import load


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    yield made
    made.restore_sys_module_state()


def test_magic_comes_and_goes(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    runtime.use(None)
    load_ipython_extension(shell)
    load_ipython_extension(shell)

    shell.run_line_magic("agentbox", "")
    assert "NoServerError" in capsys.readouterr().out

    unload_ipython_extension(shell)
    unload_ipython_extension(shell)
    assert "agentbox" not in shell.magics_manager.magics["line"]


def test_process_without_a_shell_is_left_alone() -> None:
    load(None)
