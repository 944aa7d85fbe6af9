"""The wheel, installed as a user would: into a fresh environment, with no Node."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

import jupyter_agentbox
from tests.ports import kept_port

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the working tree."""
    target = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, ROOT, env=dict(os.environ))
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own; return the directory of its programs."""
    place = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", place, env=dict(os.environ))
    programs = place / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel, env=dict(os.environ))
    return programs


def run(*command: object, env: dict[str, str]) -> str:
    finished = subprocess.run(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def run_alone(programs: Path, home: Path, program: str, *arguments: str) -> str:
    """Run one of the environment's programs with nothing else on the PATH, Node least of all."""
    alone = {"PATH": str(programs), "HOME": str(home), "NO_COLOR": "1"}
    assert shutil.which("node", path=alone["PATH"]) is None
    return run(programs / program, *arguments, env=alone)


def test_the_lab_extension_is_enabled(environment: Path, tmp_path: Path) -> None:
    listing = run_alone(environment, tmp_path, "jupyter", "labextension", "list")
    (line,) = (line for line in listing.splitlines() if "jupyter-agentbox" in line)
    assert "enabled" in line
    assert "OK" in line


def test_the_server_extension_is_enabled_and_valid(environment: Path, tmp_path: Path) -> None:
    listing = run_alone(environment, tmp_path, "jupyter", "server", "extension", "list")
    assert any("jupyter_agentbox" in line and "enabled" in line for line in listing.splitlines())
    assert any("jupyter_agentbox" in line and "OK" in line for line in listing.splitlines())


def test_the_demo_comes_with_the_wheel(environment: Path, tmp_path: Path) -> None:
    find = "from jupyter_agentbox.demo.__main__ import *; print(*map(demo_notebook, NOTEBOOKS), sep='\\n')"
    notebooks = [Path(line) for line in run_alone(environment, tmp_path, "python", "-I", "-c", find).splitlines()]
    assert [path.name for path in notebooks] == ["demo.ipynb", "agent.ipynb"]
    for notebook in notebooks:
        assert notebook.read_bytes() == (ROOT / "examples" / notebook.name).read_bytes()


def from_readme(beginning: str) -> list[str]:
    """Return the words of the README's command that begins so."""
    [line] = re.findall(rf"^{re.escape(beginning)}.*$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    return shlex.split(line, comments=True)


def page_at(url: str, server: subprocess.Popen[str]) -> str:
    """Return a page of a server that says where it is before it listens there."""
    end = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < end:
        with suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=60) as answer:
            return str(answer.read().decode())
    raise AssertionError("the server does not answer")


def test_demo_of_the_readme_starts_as_installed(environment: Path, tmp_path: Path) -> None:
    """Find a demo that needs Node, a file of the source tree or an extra, or whose page is without the extension."""
    program, *arguments = from_readme("python -m jupyter_agentbox.demo")
    alone = {"PATH": str(environment), "HOME": str(tmp_path), "NO_COLOR": "1"}
    with (
        kept_port() as port,
        subprocess.Popen(
            [environment / program, *arguments, "--no-browser", f"--port={port}", f"--directory={tmp_path / 'demo'}"],
            env=alone,
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        ) as demo,
    ):
        assert demo.stderr is not None
        try:
            lines: list[str] = []
            url = None
            while url is None:
                line = demo.stderr.readline()
                assert line, "".join(lines)
                lines.append(line)
                url = re.search(r"http://127\.0\.0\.1:\d+/lab\S*token=\w+", line)
            drain = threading.Thread(target=demo.stderr.read)
            drain.start()
            page = page_at(url[0], demo)
        finally:
            demo.send_signal(signal.SIGTERM)
    drain.join()
    assert "jupyter-agentbox" in page
    assert url[0].split("?")[0].endswith("/lab/tree/demo.ipynb")
    assert demo.returncode == 0


def test_sandboxed_kernel_of_the_readme_is_installed_for_the_user(environment: Path, tmp_path: Path) -> None:
    """Find a command that is gone, and a kernel that is elsewhere or has another name than the README says."""
    output = run_alone(environment, tmp_path, *from_readme("jupyter agentbox install-kernel"))
    [spec] = tmp_path.rglob("kernel.json")
    assert str(spec.parent) in output
    assert json.loads(spec.read_text("utf-8"))["argv"][0].startswith(str(environment))
    assert "Python 3 (agentbox sandbox)" in spec.read_text("utf-8")
    assert "*Python 3 (agentbox sandbox)*" in (ROOT / "README.md").read_text("utf-8")


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    version = jupyter_agentbox.__version__
    assert {name.split("/", maxsplit=1)[0] for name in names} == {
        "jupyter_agentbox",
        f"jupyter_agentbox-{version}.dist-info",
        f"jupyter_agentbox-{version}.data",
    }
    assert not [name for name in names if "node_modules" in name or "/tests/" in name or name.endswith(".tsx")]
    assert not [name for name in names if name.startswith("jupyter_agentbox/labextension/")]
    assert "jupyter_agentbox/py.typed" in names


def test_the_wheel_carries_all_that_is_not_python(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = f"jupyter_agentbox-{jupyter_agentbox.__version__}.data/data"
    assert f"{data}/etc/jupyter/jupyter_server_config.d/jupyter_agentbox.json" in names
    assert f"{data}/share/jupyter/labextensions/jupyter-agentbox/install.json" in names
    assert f"{data}/share/jupyter/labextensions/jupyter-agentbox/package.json" in names
    schemas = {str(path.relative_to(ROOT)) for path in (ROOT / "jupyter_agentbox" / "event_schemas").rglob("*.yaml")}
    assert schemas <= names
    assert "jupyter_agentbox/sandbox/logo-svg.svg" in names


def test_the_source_distribution_holds_what_a_build_needs(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, ROOT, env=dict(os.environ))
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.split("/", maxsplit=1)[1] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "package.json",
        "yarn.lock",
        "LICENSE",
        "README.md",
        "examples/demo.ipynb",
        "examples/agent.ipynb",
    } <= names
    assert {"labextension/src/index.ts", "jupyter_agentbox/labextension/static/style.js"} <= names
    assert not [name for name in names if name.startswith(("node_modules/", ".venv", ".demo/"))]


def test_both_packages_have_one_version() -> None:
    package = json.loads((ROOT / "package.json").read_text("utf-8"))
    assert package["version"] == jupyter_agentbox.__version__
