"""Each command that the README and the documentation show is one that exists, with the options that it is shown with.

None is run here: the wheel's test runs those of the README that need no network. What each kind of command is looked up
in, and what that finds:

* ``jupyter agentbox`` and ``jupyter-agentbox``: the command's own parser. A renamed command or option, a missing
  argument, a value that an option does not take, and sandbox settings that a kernelspec cannot have.
* ``python -m``: the modules that are installed. A module that moved.
* ``make``: the Makefile. A target that was renamed.
* ``pip install``: the project's metadata. An extra, or a name of the package, that does not exist.
* ``jupyter lab``: the traits of its extension. A setting that was renamed.

A program that is not known here fails the test, so that somebody decides how its commands are checked.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from importlib.metadata import metadata
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from traitlets.config import Application

from jupyter_agentbox import cli
from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.sandbox_settings import SandboxSettings

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]
#: Programs that are not this project's: they are not looked into.
OTHERS = {"apt", "curl", "echo", "export", "install", "journalctl", "kubectl", "mkdir", "npm", "pg_dump", "psql"} | {
    "createdb", "systemctl", "tljh-config", "useradd",
}  # fmt: skip
BLOCK = re.compile(r"^```(bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Commands in the README's text, such as `jupyter agentbox exec notebook.ipynb`.
INLINE = re.compile(r"`((?:jupyter agentbox|make|python -m) [^`]+)`")


def commands() -> Iterator[tuple[str, str]]:
    """Yield each page with each of its commands. In a block of `console`, only lines after a prompt are commands."""
    for page in PAGES:
        text = page.read_text("utf-8")
        name = page.relative_to(ROOT).as_posix()
        for language, block in BLOCK.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                if language == "bash" or line.startswith("$ "):
                    yield name, line.removeprefix("$ ")
        if page.name == "README.md":
            yield from ((name, command) for command in INLINE.findall(text))


class Parsed(Exception):  # noqa: N818  # it says that all is well
    """A parser understood the command line. It carries what the parser found."""


@pytest.fixture
def only_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command end once its parser has understood its arguments."""
    parse = argparse.ArgumentParser.parse_args

    def parse_args(parser: argparse.ArgumentParser, *arguments: Any) -> None:
        raise Parsed(parse(parser, *arguments))

    def parse_command_line(application: Application, argv: list[str]) -> None:
        traits = {f"--{kind.__name__}.{trait}" for kind in application.classes for trait in kind.class_traits()}
        known = {f"--{name}" for name in (*application.aliases, *application.flags)} | traits
        unknown = [word for word in argv if word.startswith("-") and word.split("=")[0] not in known]
        assert not unknown
        raise Parsed(argparse.Namespace())

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    monkeypatch.setattr(Application, "parse_command_line", parse_command_line)


def words_of(command: str) -> list[str]:
    """Return a command's words, without variables and `sudo` before the program, and what reads or keeps its output."""
    command = re.sub(r"\$\([^()]*\)", "1", command)  # what another command prints, such as the number of a process
    words = list(takewhile(lambda word: word not in {">", "|"}, shlex.split(command, comments=True)))
    while words and re.match(r"\w+=", words[0]):
        words.pop(0)
    if words[:1] == ["sudo"]:
        words = words[3:] if words[1] == "-u" else words[1:]
    return words


@pytest.mark.usefixtures("only_parsing")
@pytest.mark.parametrize(("page", "command"), list(commands()), ids=str)
def test_command_exists_and_takes_what_it_is_shown_with(page: str, command: str) -> None:
    match words_of(command):
        case ["claude", "mcp", "add", _, "--", program, *arguments]:
            check(program, arguments)
        case [program, *arguments]:
            check(program, arguments)


def check(program: str, arguments: list[str]) -> None:
    match [Path(program).name, *arguments]:
        case ["jupyter-agentbox", *rest] | ["jupyter", "agentbox", *rest]:
            with pytest.raises(Parsed) as parsed:
                cli.main(rest)
            (options,) = parsed.value.args
            if rest[0] == "install-kernel":
                config = json.loads(options.config)
                config.pop("sandbox_config", None)
                SandboxSettings.from_mapping(config)
        case ["jupyter", "lab", *rest]:
            assert [option for option in rest if not is_setting(option)] == []
        case ["pip" | "pip3", "install", *rest] | ["python" | "python3", "-m", "pip", "install", *rest]:
            assert [name for name in rest if not name.startswith("-") and not is_package(name)] == []
        case ["python" | "python3", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None
        case ["python" | "python3", script] if script.endswith(".py"):
            pass
        case ["make", target, *_]:
            assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        case [name, *_]:
            assert name in OTHERS, f"nobody has said how commands of `{name}` are checked"


def is_setting(option: str) -> bool:
    """Whether an option of JupyterLab sets a trait of this package's extension."""
    found = re.fullmatch(r"--AgentBoxApp\.(\w+)=.+", option)
    return found is not None and found[1] in AgentBoxApp.class_traits(config=True)


def is_package(text: str) -> bool:
    """Whether a requirement, if it is for this package, names only extras that it has."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return False
    if not re.fullmatch(r"jupyter[-_.]agentbox", requirement.name):
        return requirement.name in {"comm", "ipykernel", "ipywidgets"}
    return requirement.extras <= set(metadata("jupyter-agentbox").get_all("Provides-Extra", []))


def test_every_block_of_the_readme_is_looked_at() -> None:
    shown = [command for page, command in commands() if page == "README.md"]
    assert {"make demo", "python -m jupyter_agentbox.demo", "jupyter agentbox install-kernel"} <= {
        " ".join(words_of(command)) for command in shown
    }
