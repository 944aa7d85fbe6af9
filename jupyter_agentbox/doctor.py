"""``jupyter agentbox doctor``: checks that everything needed for approvals is in place, and gives advice."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jupyter_core.paths import jupyter_config_path, jupyter_path

from jupyter_agentbox import __version__, hub_doctor
from jupyter_agentbox.audit_sinks.sinks import is_of_package, sink_of, with_names
from jupyter_agentbox.composition import rule_files
from jupyter_agentbox.core.isolation import LADDER, Isolation
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.doctor_checks import Check, State
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.sign_ins import usable_keyring
from jupyter_agentbox.paths import added_servers_path, config_dir, data_dir, site_rules_paths, user_rules_path
from jupyter_agentbox.sandbox.server.probes import install_advice, why_unavailable
from jupyter_agentbox.services.audit.trails import names_of
from jupyter_agentbox.storage.inspection import inspect_store

#: Exit codes.
OK: Final = 0
#: There is a problem.
PROBLEMS: Final = 1
WRONG_COMMAND: Final = 2

_PACKAGES: Final = ("jupyter_server", "jupyterlab", "notebook", "ipykernel", "ipywidgets", "jupyterhub", "mcp")
_NEEDED: Final = ("jupyter_server", "ipykernel", "ipywidgets", "mcp")
_EXTENSION: Final = "jupyter-agentbox"
#: Variables that a Hub sets for its users' servers.
_HUB_VARIABLES: Final = ("JUPYTERHUB_API_URL", "JUPYTERHUB_API_TOKEN", "JUPYTERHUB_USER", "JUPYTERHUB_SERVICE_PREFIX")
_PORTS: Final = {"https": 443, "http": 80, "syslog+tls": 6514, "syslog+tcp": 601}
#: Seconds to wait for a connection to an audit sink.
_PATIENCE: Final = 3.0


#: Runs this command in a new process: no part of this one has then seen another environment.
_AGAIN: Final = "import sys; from jupyter_agentbox.doctor import main; sys.exit(main(sys.argv[1:]))"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(argv)
    if options.environment_of is not None:
        return _in_environment_of(options)
    checks = list(examine(database=options.database, environment=os.environ))
    if options.hub:
        checks += examine_hub(os.environ)
    if options.json:
        sys.stdout.write(json.dumps([asdict(check) for check in checks], indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{check}\n" for check in checks))
    return PROBLEMS if any(check.state == "problem" for check in checks) else OK


def _in_environment_of(options: argparse.Namespace) -> int:
    """Run the command with the environment of a process; return its exit code."""
    try:
        entries = Path(f"/proc/{options.environment_of}/environ").read_bytes().split(b"\0")
    except OSError as error:
        sys.stderr.write(f"the environment of process {options.environment_of} cannot be read: {error.strerror}\n")
        return WRONG_COMMAND
    environment = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    database = [] if options.database is None else ["--database", str(options.database)]
    flags = [f"--{name}" for name in ("hub", "json") if getattr(options, name)]
    return subprocess.run([sys.executable, "-c", _AGAIN, *flags, *database], env=environment, check=False).returncode


def examine(*, database: Path | None, environment: Mapping[str, str]) -> Iterator[Check]:
    """Run all checks, as a server of this user would see them. Changes nothing.

    Parameters
    ----------
    database : Path or None
        The approval store; ``None`` for the default path.
    environment : mapping
        The variables that a server would have.
    """
    yield from versions()
    yield server_extension()
    yield lab_extension()
    yield from sandbox()
    yield store(database or data_dir() / "approvals.sqlite")
    book = rule_files(user=user_rules_path()).load()
    yield from rules(book)
    yield from servers(environment)
    yield keyring()
    for address in book.site.audit.sinks:
        yield sink(address, book.site.audit.token_file, names=names_of(environment))
    yield hub(environment)


def examine_hub(environment: Mapping[str, str]) -> Iterator[Check]:
    """Check the setup of a Hub's administrator, as it applies to this user's server. Changes nothing."""
    answer = hub_doctor.ask_hub(environment)
    book = rule_files(user=None).load()
    yield hub_doctor.token(answer)
    yield from hub_doctor.configuration(environment, [path for path, _ in site_rules_paths()])
    yield hub_doctor.kernelspecs([Path(one) for one in jupyter_path("kernels")])
    reached = [level for level in LADDER if level is not Isolation.NONE and not why_unavailable(level)]
    yield hub_doctor.level(reached, environment)
    yield hub_doctor.sinks(book)
    yield hub_doctor.public_url(environment)
    yield hub_doctor.clock(answer, datetime.now(UTC))
    yield hub_doctor.policy(book)


def versions() -> Iterator[Check]:
    """Check the installed packages."""
    found = {name: _version(name) for name in _PACKAGES}
    there = [f"{name} {each}" for name, each in found.items() if each]
    yield Check(
        name="versions",
        state="ok",
        text=", ".join([f"Python {sys.version.split()[0]}", f"jupyter-agentbox {__version__}", *there]),
    )
    for name in _NEEDED:
        if not found[name]:
            yield Check(name="versions", state="problem", text=f"{name} is missing", advice=f"pip install {name}")
    if not found["jupyterlab"] and not found["notebook"]:
        advice = "pip install jupyterlab, unless you only run code with `jupyter agentbox exec` or `CodeExecutor`"
        yield Check(name="versions", state="note", text="neither JupyterLab nor Notebook is installed", advice=advice)


def server_extension() -> Check:
    """Check that Jupyter servers load the extension."""
    is_enabled, where = None, ""
    for directory in reversed(jupyter_config_path()):  # the first of them has the last word
        for path in [*sorted(Path(directory, "jupyter_server_config.d").glob("*.json")), _main_config(directory)]:
            said = _object(_object(_json(path).get("ServerApp")).get("jpserver_extensions")).get("jupyter_agentbox")
            if isinstance(said, bool):
                is_enabled, where = said, str(path)
    if is_enabled:
        return Check(name="server extension", state="ok", text=f"enabled in {where}")
    text = "not enabled by any configuration file" if is_enabled is None else f"disabled in {where}"
    advice = "jupyter server extension enable jupyter_agentbox"
    return Check(name="server extension", state="problem", text=text, advice=advice)


def lab_extension() -> Check:
    """Check that pages load the lab extension."""
    name = "lab extension"
    places = [Path(one, _EXTENSION) for one in jupyter_path("labextensions") if Path(one, _EXTENSION).is_dir()]
    if not places:
        advice = "pip install --force-reinstall jupyter-agentbox, in the environment of JupyterLab"
        return Check(name=name, state="problem", text="it is not installed", advice=advice)
    for one, path in _disabled().items():
        advice = f"jupyter labextension enable {one}: without it, waiting requests are not shown"
        return Check(name=name, state="problem", text=f"disabled in {path}", advice=advice)
    installed = str(_json(places[0] / "package.json").get("version"))
    if installed != __version__:
        text = f"{places[0]} has version {installed}, but the server extension has {__version__}"
        return Check(name=name, state="problem", text=text, advice="reinstall jupyter-agentbox, and reload the page")
    return Check(name=name, state="ok", text=f"{installed} in {places[0]}")


def _disabled() -> dict[str, Path]:
    """Return which part of the lab extension is disabled, all of it or a plugin, and in which file."""
    found: dict[str, Path] = {}
    for directory in reversed(jupyter_config_path()):  # the first of them has the last word
        path = Path(directory, "labconfig", "page_config.json")
        said = _json(path).get("disabledExtensions")
        said = dict.fromkeys(map(str, said), True) if isinstance(said, list) else _object(said)
        for one, is_off in said.items():
            if one.partition(":")[0] == _EXTENSION:
                found.pop(one, None)
                found |= {one: path} if is_off else {}
    return found


def sandbox() -> Iterator[Check]:
    """Try each level of isolation."""
    met = {level: why_unavailable(level) for level in SANDBOX_LEVELS}
    works = [level.value for level, why in met.items() if not why]
    state: State = "ok" if works else "note"
    advice = "" if works else f"plain kernels work; for sandboxed ones, {install_advice()}"
    yield Check(name="sandbox", state=state, text=f"reached: {', '.join(works) or 'none'}", advice=advice)
    for level, why in met.items():
        if why:
            yield Check(name=f"sandbox {level.value}", state="note", text=why)


def store(path: Path) -> Check:
    """Check the approval store."""
    name, found = "approval store", inspect_store(path)
    if found.problem:
        advice = "move it away, or restore it from a backup; until then no call runs"
        return Check(name=name, state="problem", text=f"{path} cannot be read: {found.problem}", advice=advice)
    if not found.is_writable:
        advice = "make the file and its directory writable for this user, or set `AgentBoxApp.database_url`"
        return Check(name=name, state="problem", text=f"{path} cannot be written", advice=advice)
    if found.version > found.latest:
        text = f"{path} was written by a newer release (schema {found.version}, this one knows {found.latest})"
        return Check(
            name=name, state="problem", text=text, advice="upgrade jupyter-agentbox, or choose another database"
        )
    if found.shared and found.journal_mode == "wal":
        text = f"{path} is in journal mode `wal` on a network file system (`{found.shared}`), where that does not work"
        return Check(
            name=name, state="note", text=text, advice="the next server that opens it changes that to `delete`"
        )
    if not found.exists:
        return Check(name=name, state="ok", text=f"{path} will be created at the first start")
    if found.version < found.latest:
        text = f"{path} was written by an earlier release (schema {found.version}; the current one is {found.latest})"
        advice = "the next server that opens it upgrades it; keep a copy if you may want to go back"
        return Check(name=name, state="note", text=text, advice=advice)
    return Check(name=name, state="ok", text=f"{path}, schema {found.version}, journal mode `{found.journal_mode}`")


def rules(book: RuleBook) -> Iterator[Check]:
    """Check the rules files of the site and the user."""
    for problem in book.problems:
        advice = "until this is corrected, calls ask or are denied"
        yield Check(name="rules", state="problem", text=str(problem), advice=advice)
    if book.problems:
        return
    there = [str(path) for path in (user_rules_path(), *(path for path, _ in site_rules_paths())) if path.exists()]
    yield Check(name="rules", state="ok", text=f"{len(book.rules)} in {', '.join(there) or 'no file'}")


def servers(environment: Mapping[str, str]) -> Iterator[Check]:
    """Check the configuration of MCP servers. Starts none."""
    path = config_dir() / "mcp.json"
    read = ConfigurationFiles([path, added_servers_path()], environment).load()
    for problem in read.problems:
        advice = "until this is corrected, the server or the file is not used"
        yield Check(name="MCP servers", state="problem", text=str(problem), advice=advice)
    names = ", ".join(read.servers) or "none"
    yield Check(name="MCP servers", state="ok", text=f"configured in {path} and by approved requests: {names}")


def keyring() -> Check:
    """Check where sign-ins to remote servers are stored."""
    if usable_keyring() is not None:
        return Check(name="keyring", state="ok", text="sign-ins to remote MCP servers are kept there")
    text = "there is none: sign-ins to remote MCP servers are kept in a file that only this user can read"
    return Check(name="keyring", state="note", text=text)


def sink(address: str, token_file: str, *, names: Mapping[str, str]) -> Check:
    """Check that an audit sink can be reached. Sends nothing."""
    try:
        parts = urlsplit(with_names(address, names))
    except ValueError:
        text = "one of the addresses cannot be read"
        return Check(name="audit sink", state="problem", text=text, advice="correct it")
    # Without a password in the address or a key in its query.
    name = f"audit sink {parts.scheme}://{parts.hostname or parts.path}"
    try:
        sink_of(address, names=names, token_file=token_file)
        if is_of_package(address):
            return Check(name=name, state="ok", text="an installed package has it; it was not tried")
        if token_file and parts.scheme.endswith(("http", "https")):
            Path(token_file).read_bytes()
        scheme = parts.scheme.removeprefix("otlp+").removeprefix("agentbox+")
        _reach(scheme, parts.hostname, parts.port, Path(parts.path))
    except OSError as error:
        advice = "until it can be reached, records wait here or no call runs, depending on `audit_when_down`"
        return Check(name=name, state="problem", text=f"cannot be reached: {error.strerror or error}", advice=advice)
    except ValueError as error:
        return Check(name=name, state="problem", text=str(error), advice="correct it")
    return Check(name=name, state="ok", text="reached")


def _reach(scheme: str, host: str | None, port: int | None, path: Path) -> None:
    """Raise an `OSError` if an audit sink cannot be reached."""
    if host is not None and scheme in _PORTS:
        socket.create_connection((host, port or _PORTS[scheme]), timeout=_PATIENCE).close()
    elif host is not None:
        socket.getaddrinfo(host, port)  # a datagram does not show whether anybody receives it
    elif scheme == "file":
        path.parent.stat()
    elif scheme == "syslog":
        path.stat()


def hub(environment: Mapping[str, str]) -> Check:
    """Check the variables that JupyterHub sets for a user's server."""
    there = [name for name in _HUB_VARIABLES if environment.get(name)]
    if not there:
        return Check(name="JupyterHub", state="ok", text="none: this is not a terminal of a Hub's server")
    missing = [name for name in _HUB_VARIABLES if name not in there]
    if missing:
        advice = "the Hub's spawner has to set them"
        return Check(name="JupyterHub", state="problem", text=f"not set: {', '.join(missing)}", advice=advice)
    if not environment.get("JUPYTERHUB_PUBLIC_URL"):
        text = f"user {environment['JUPYTERHUB_USER']}; the public URL is unknown, so texts contain only paths"
        return Check(name="JupyterHub", state="note", text=text, advice="set `c.JupyterHub.public_url`")
    return Check(name="JupyterHub", state="ok", text=f"user {environment['JUPYTERHUB_USER']}")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _main_config(directory: str) -> Path:
    return Path(directory, "jupyter_server_config.json")


def _json(path: Path) -> dict[str, Any]:
    """Return the object in one of Jupyter's files; empty without a file, or if it is broken, which Jupyter reports."""
    try:
        return _object(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jupyter agentbox doctor",
        description="Check that everything needed for approvals is in place. Changes nothing.",
    )
    parser.add_argument("--json", action="store_true", help="print the results as a JSON list")
    parser.add_argument("--hub", action="store_true", help="also check the setup of a Hub's administrator")
    parser.add_argument(
        "--environment-of",
        metavar="PID",
        type=int,
        help="use the environment of this process of the same user, such as that of a running server (Linux)",
    )
    parser.add_argument(
        "--database",
        metavar="PATH",
        type=Path,
        help="the approval store (default: agentbox/approvals.sqlite in Jupyter's data directory)",
    )
    return parser
