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


def test_a_sandboxed_kernel_explains_errors_of_its_network_once(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTBOX_SANDBOX_DOMAINS", "")
    load(shell)
    load(shell)

    shell.run_cell("import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')")
    assert capsys.readouterr().err.count("no network") == 1
    shell.run_cell("1 / 0")
    assert "network" not in capsys.readouterr().err


def test_other_kernels_explain_nothing(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTBOX_SANDBOX_DOMAINS", raising=False)
    load(shell)

    shell.run_cell("import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')")
    assert "sandboxed" not in capsys.readouterr().err
