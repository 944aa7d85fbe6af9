"""Where no directory is named, sandboxed kernels come from those that the user of the server cannot change."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from jupyter_agentbox.sandbox.kernelspecs import NotAKernelError, SandboxedKernelSpecManager

SANDBOXED = {"kernel_provisioner": {"provisioner_name": "agentbox-sandbox"}}


def install(data: Path, name: str, *, is_sandboxed: bool = True) -> None:
    """Install a kernelspec in a data directory."""
    directory = data / "kernels" / name
    directory.mkdir(parents=True)
    spec = {"argv": ["python"], "display_name": str(data), "metadata": SANDBOXED if is_sandboxed else {}}
    (directory / "kernel.json").write_text(json.dumps(spec))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home with a directory of kernelspecs."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(home / "data"))
    for name, is_sandboxed in (("agentbox-sandbox", True), ("loose", True), ("plain", False)):
        install(home / "data", name, is_sandboxed=is_sandboxed)
    return home


def test_kernelspecs_of_the_user_do_not_exist_unless_their_directory_is_named(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = SandboxedKernelSpecManager(log=logging.getLogger("specs"))

    assert "loose" not in manager.find_kernel_specs()
    for name in ("loose", "plain"):
        with pytest.raises(NotAKernelError):
            manager.get_kernel_spec(name)
    assert f"ignored the kernelspecs in `{home / 'data' / 'kernels'}`" in caplog.text
    named = SandboxedKernelSpecManager(kernelspec_dirs=[str(home / "data" / "kernels")])
    assert {*named.find_kernel_specs()} == {"agentbox-sandbox", "loose"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a directory that the user cannot change")
@pytest.mark.parametrize("is_open", [False, True])
def test_those_of_the_site_are_offered_and_the_users_of_the_same_name_are_not(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    site = tmp_path / "site"
    install(site, "agentbox-sandbox")
    install(site, "of-the-site", is_sandboxed=False)
    monkeypatch.setenv("JUPYTER_PATH", f"{home / 'data'}{os.pathsep}{site}")  # the user's first
    if is_open:
        site.chmod(0o777)

    found = SandboxedKernelSpecManager().find_kernel_specs()

    known = {name: Path(directory) for name, directory in found.items() if tmp_path in Path(directory).parents}
    assert known == ({} if is_open else {"agentbox-sandbox": site / "kernels" / "agentbox-sandbox"})
