from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jupyter_agentbox.cli import main


def test_installed_kernel_names_the_interpreter_and_the_provisioner(tmp_path: Path) -> None:
    config = {"memory_limit": 1 << 30}
    arguments = ["--name", "boxed", "--prefix", str(tmp_path), "--python", sys.executable]

    assert main(["install-kernel", *arguments, "--config", json.dumps(config)]) == 0

    spec = json.loads((tmp_path / "share" / "jupyter" / "kernels" / "boxed" / "kernel.json").read_text())
    assert spec["argv"] == [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert spec["display_name"] == "Python 3 (agentbox sandbox)"
    assert spec["metadata"]["kernel_provisioner"] == {"provisioner_name": "agentbox-sandbox", "config": config}


def test_installed_kernel_has_a_logo_of_its_own(tmp_path: Path) -> None:
    assert main(["install-kernel", "--name", "boxed", "--prefix", str(tmp_path)]) == 0

    # Jupyter looks for a logo under this name.
    logo = tmp_path / "share" / "jupyter" / "kernels" / "boxed" / "logo-svg.svg"
    assert ElementTree.parse(logo).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_what_will_not_start_here_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"levels": ["landlock"], "allowed_domains": ["example.com"]}

    assert main(["install-kernel", "--prefix", str(tmp_path), "--config", json.dumps(config)]) == 0

    assert "cannot start on this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--python", "/nonexistent/python"],
        ["--python", "/bin/false"],
        ["--config", "not JSON"],
        ["--config", "[]"],
        ["--config", '{"allowed_domain": ["example.com"]}'],
        ["--config", '{"allowed_domains": ["*.com"]}'],
    ],
)
def test_what_cannot_work_is_not_installed(tmp_path: Path, wrong: list[str]) -> None:
    assert main(["install-kernel", "--prefix", str(tmp_path), *wrong]) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_help_of_the_command_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    assert "install-kernel" in capsys.readouterr().out
