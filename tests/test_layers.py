"""The imports of every module against the picture in the design: arrows point down, adapters do not know each other."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import jupyter_agentbox

ROOT = Path(jupyter_agentbox.__file__).parent

#: Part -> its height. A part may import lower ones and itself; parts of one height are strangers.
HEIGHTS = {
    "exceptions": 0,
    "core": 1,
    "background": 1,
    "log_levels": 1,
    "no_redirects": 1,
    "loop_turn": 1,
    "no_follow": 1,
    "private_files": 1,
    "protocol": 2,
    "processes": 2,
    "trusted_imports": 2,
    "analysis": 3,
    "audit_sinks": 3,
    "bridge": 3,
    "codegen": 3,
    "events": 3,
    "metrics": 3,
    "contents": 3,
    "kernel": 3,
    "kernel_app": 4,
    "mcp_client": 3,
    "paths": 3,
    "sandbox": 3,
    "storage": 3,
    "system": 3,
    "testing": 3,
    "agents": 4,
    "services": 5,
    "agent_composition": 7,
    "composition": 6,
    "headless": 8,
    "app": 8,
    "hub": 8,
    "history_table": 3,
    "times": 2,
    "hold_commands": 8,
    "history_commands": 9,
    "database_commands": 9,
    "hub_doctor": 8,
    "doctor_checks": 3,
    "doctor": 9,
    "server_commands": 9,
    "exec_in_jupyterlab": 10,
    "cli": 11,
    "mcp_server": 9,
}

#: Modules that belong to a part of another name.
BELONGS_TO = {"tools": "kernel"}

#: What the kernel's environment surely has.
KERNEL_PACKAGES = {"IPython", "comm", "ipykernel", "ipywidgets", "jupyter_client", "traitlets", "zmq"}

#: What the core must do without.
IMPURE = {
    *("asyncio", "concurrent", "multiprocessing", "os", "pathlib", "queue", "random", "secrets"),
    *("select", "selectors", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time", "uuid"),
}

#: An outside package -> the only parts that may know it.
ONLY_IN = {
    "IPython": {"analysis", "kernel"},
    "comm": {"kernel"},
    "h11": {"sandbox"},
    "ipywidgets": {"kernel"},
    "jsonschema_rs": {"mcp_client"},
    "pydantic_ai": {"agents"},
    "mcp": {"mcp_client", "mcp_server", "demo"},
    "sqlalchemy": {"storage"},
    "jupyterhub": {"hub"},
    "prometheus_client": {"hub", "metrics", "services"},
    "tornado": {"audit_sinks", "services", "bridge", "contents", "app", "hub", "kernel", "headless", "sandbox"},
    "jupyter_server": {"services", "bridge", "contents", "app", "headless"},
    "jupyter_client": {"bridge", "contents", "kernel", "kernel_app", "sandbox"},
    "jupyter_events": {"bridge", "contents", "events", "app"},
    "zmq": {"bridge", "headless", "kernel", "kernel_app"},
}

_LIGHT = "an entry point: importing the package must be light"
_ENVIRONMENT = "Jupyter reads the environment when it is imported, so that has to be set before"
_SOURCES = "the package may be run from its sources, and is put on the path first"
_IN_THE_KERNEL = "this file is run by its path, and finds its package only then"
_NO_SANDBOX = "most kernels have no sandbox, and importing must be light"
_KERNEL_START = "loading the kernel side must cost a kernel's start next to nothing"

_MODELS = "what asks models takes seconds to import, and is an extra that may be missing"
_ONLY_ON_A_HUB = "only a policy of a Hub service is signed, and what checks that may be missing elsewhere"
_ONE_PROVIDER = "each provider's library takes half a second, and one is enough"

#: (module, what it imports late) -> why. Paths are below the package.
LATE = {
    ("", "kernel.extension"): _LIGHT,
    ("", "app.extension"): _LIGHT,
    ("kernel.display", "kernel.card"): "ipywidgets is slow, and may be missing",
    ("kernel.agent_magic", "kernel.agent_cell"): _KERNEL_START,
    ("kernel.agent_magic", "protocol.messages"): _KERNEL_START,
    ("kernel.agent_magic", "uuid"): _KERNEL_START,
    ("kernel.magics", "kernel.modules"): _KERNEL_START,
    ("kernel.magics", "tools"): _KERNEL_START,
    ("kernel_app.launcher", ""): _SOURCES,
    ("kernel_app.launcher", "kernel_app.streams"): _SOURCES,
    ("kernel_app.launcher", "kernel_app.workspace"): _SOURCES,
    ("kernel.extension", "kernel.network_errors"): "only a sandboxed kernel needs it",
    ("kernel.results", "pandas"): "optional, and slow",
    ("kernel.media", "IPython.display"): "results can be read where IPython is not",
    ("kernel.runtime", "kernel.failures"): _KERNEL_START,
    ("kernel.runtime", "kernel.link"): _KERNEL_START,
    ("kernel.runtime", "kernel.server_absence"): _KERNEL_START,
    ("kernel.runtime", "kernel.socket_transport"): _KERNEL_START,
    ("kernel.runtime", "kernel.transport"): _KERNEL_START,
    ("agents.model_generator", "agents.model_questions"): _MODELS,
    ("agents.model_generator", "agents.threads.keys"): _MODELS,
    ("agents.model_generator", "agents.threads.models"): _MODELS,
    ("agents.threads.clients", "agents.threads.models"): _MODELS,
    ("storage.signed_policies", "cryptography.exceptions"): _ONLY_ON_A_HUB,
    ("storage.signed_policies", "cryptography.hazmat.primitives.asymmetric.ed25519"): _ONLY_ON_A_HUB,
    ("agents.threads.keys", "keyring"): "an extra, and slow where it asks another program",
    ("agents.threads.manager", "agents.threads.agent_tools"): _MODELS,
    ("agents.threads.manager", "agents.generate_turn"): _MODELS,
    ("agents.threads.manager", "agents.threads.histories"): _MODELS,
    ("agents.threads.manager", "agents.threads.model_reviewer"): _MODELS,
    ("agents.threads.manager", "agents.threads.turns"): _MODELS,
    ("agents.threads.models", "pydantic_ai.models.anthropic"): _ONE_PROVIDER,
    ("agents.threads.models", "pydantic_ai.models.openai"): _ONE_PROVIDER,
    ("agents.threads.models", "pydantic_ai.providers.anthropic"): _ONE_PROVIDER,
    ("agents.threads.models", "pydantic_ai.providers.openai"): _ONE_PROVIDER,
    ("agents.threads.request_bodies", "agents.threads.response_events"): _ONE_PROVIDER,
    ("agents.threads.request_bodies", "openai"): _ONE_PROVIDER,
    ("agent_composition", "agents.threads.models"): _MODELS,
    ("app.agent_traits", "agent_composition"): "a server that uses no agent pays nothing for them",
    ("app.agent_traits", "agents.threads.limits"): "a server that uses no agent pays nothing for them",
    ("app.notebook_agents", "agent_composition"): "a server that uses no agent pays nothing for them",
    ("headless.agent", "agents.threads.clients"): _LIGHT,
    ("headless.agent", "agents.threads.keys"): _LIGHT,
    ("headless.agent", "agents.threads.manager"): _LIGHT,
    ("headless.agent", "agents.threads.models"): _MODELS,
    ("headless.agent", "storage.approvals"): _LIGHT,
    ("headless.agent", "storage.threads"): _LIGHT,
    ("headless.agent", "system"): _LIGHT,
    ("cli", "hub.app"): "an extra, which the other commands can do without",
    ("cli", "hub.auth_state_headers"): "only the Hub service runs it",
    ("cli", "sandbox.install"): "only this command needs kernelspecs",
    ("cli", "history_commands"): "SQLAlchemy takes a quarter of a second, which running code should not cost",
    ("cli", "database_commands"): "SQLAlchemy takes a quarter of a second, which running code should not cost",
    ("cli", "server_commands"): "code in a kernel of its own needs no HTTP client",
    ("cli", "doctor"): "what it looks at, the other commands can do without",
    ("cli", "mcp_server.command"): "the MCP SDK takes a second, which the other commands should not pay",
    ("cli", "exec_in_jupyterlab"): "code in a kernel of its own needs no HTTP client",
    ("headless.terminal", "termios"): "not on every platform",
    ("headless.mcp_sources", "codegen.packages"): "only where sources are written",
    ("headless.mcp_sources", "mcp_client.limits"): "the MCP SDK takes a second, which importing must not cost",
    ("headless.mcp_sources", "mcp_client.registry"): "the MCP SDK takes a second, which importing must not cost",
    ("headless.mcp_sources", "sandbox.server.writable_directories"): "only where a server is tried out",
    ("headless.backend", "headless.local_services"): "the services take longer to import than a kernel to start",
    ("headless.discovery", "jupyter_core.paths"): "only where a server is looked for",
    ("headless.kernel_processes", "sandbox.server.configuration_files"): _NO_SANDBOX,
    ("headless.kernel_processes", "sandbox.server.process"): _NO_SANDBOX,
    ("headless.sandbox_config", "sandbox.server.programs"): "only where a file has the settings of a sandbox",
    ("paths", "jupyter_core.paths"): "only where a tool is called",
    ("headless.gateway_server", ""): _SOURCES,
    ("headless.gateway_server", "core.isolation"): _SOURCES,
    ("headless.gateway_server", "exceptions"): _SOURCES,
    ("headless.gateway_server", "headless.gateway"): _SOURCES,
    ("headless.gateway_server", "sandbox.server.probes"): _SOURCES,
    ("headless.gateway_server", "jupyter_core.paths"): _ENVIRONMENT,
    ("headless.gateway_server", "jupyter_server.serverapp"): _ENVIRONMENT,
    ("headless.gateway_server", "jupyter_server.services.kernels.websocket"): _ENVIRONMENT,
    ("headless.gateway_server", "traitlets.config"): _ENVIRONMENT,
    ("headless.gateway_server", "zmq"): _ENVIRONMENT,
    ("processes.process", "fcntl"): "not on every platform",
    ("processes.reaper", "ctypes"): "costs the reaper milliseconds where it is of no use",
    ("processes.reaper", "resource"): "costs the reaper milliseconds where it is of no use",
    ("sandbox.inside.bootstrap", "ipykernel.debugger"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "ipykernel.ipkernel"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "ipykernel.kernelapp"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "ipykernel.zmqshell"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "resource"): "only where there are no namespaces",
    ("sandbox.inside.bootstrap", "sandbox.watch.file_attributes"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "sandbox.inside.port_forwarder"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "sandbox.inside.syscalls"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "sandbox.inside.seccomp"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "sandbox.watch.supervisors"): _IN_THE_KERNEL,
    ("sandbox.inside.bootstrap", "socket"): "only to probe",
    ("sandbox.server.writable_directories", "sandbox.server.run_directory"): "not on every platform",
    (
        "mcp_client.configuration",
        "mcp_client.configuration_entries",
    ): "pydantic takes 0.1 s, which who has no MCP server need not wait for",
    ("services.servers.sign_ins", "mcp_client.authorization"): "the MCP SDK takes a second, and few people sign in",
    ("services.servers.sign_ins", "mcp_client.token_requests"): "the MCP SDK takes a second, and few people sign in",
    ("mcp_client.sign_ins", "keyring"): "an extra, and slow where it asks another program",
    (
        "mcp_client.server",
        "mcp_client.connections",
    ): "the MCP SDK takes a second, which a server that calls no tool should not pay",
}


@dataclass(frozen=True)
class Import:
    module: str
    imported: str
    line: int
    late: bool
    for_types: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.imported}"


def name_of(path: Path) -> str:
    parts = ["jupyter_agentbox", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """Return the part of the package; empty for the package itself."""
    names = module.split(".")
    return BELONGS_TO.get(names[1], names[1]) if len(names) > 1 else ""


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports_in(module: str) -> Iterator[Import]:
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    yield from walk(ast.parse(path.read_text(encoding="utf-8")), module, package, late=False, for_types=False)


def walk(node: ast.AST, module: str, package: str, *, late: bool, for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(module, alias.name, child.lineno, late, for_types)
        elif isinstance(child, ast.ImportFrom):
            yield from imports_from(child, module, package, late=late, for_types=for_types)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            is_for_types = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            yield from walk(child, module, package, late=late or is_function, for_types=for_types or is_for_types)


def imports_from(node: ast.ImportFrom, module: str, package: str, *, late: bool, for_types: bool) -> Iterator[Import]:
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*above, base] if base else above)
    for alias in node.names:
        whole = f"{base}.{alias.name}"
        yield Import(module, whole if whole in MODULES else base, node.lineno, late, for_types)


IMPORTS = [found for module in MODULES for found in imports_in(module)]


def is_ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] == "jupyter_agentbox"


def is_allowed(found: Import) -> bool:
    importer, imported = part_of(found.module), part_of(found.imported)
    if imported in ("", importer):  # the package itself is only a version and lazy names
        return True
    if importer == "":
        return found.late or found.for_types
    if importer == "demo":
        return imported == "testing"
    if importer not in HEIGHTS or imported not in HEIGHTS:
        return False
    return HEIGHTS[imported] < HEIGHTS[importer]


def test_every_part_has_a_place() -> None:
    assert {part_of(module) for module in MODULES} - {"", "demo"} <= HEIGHTS.keys()


def test_arrows_point_down_and_adapters_do_not_know_each_other() -> None:
    assert [str(found) for found in IMPORTS if is_ours(found.imported) and not is_allowed(found)] == []


def circles_among(imports: Iterable[Import]) -> list[str]:
    """Return the circles of imports, each as the modules along it."""
    outgoing: dict[str, set[str]] = {}
    for found in imports:
        if is_ours(found.imported) and found.imported != found.module:
            outgoing.setdefault(found.module, set()).add(found.imported)
    circles, settled = [], set[str]()

    def follow(module: str, way: list[str]) -> None:
        if module in way:
            circles.append(" -> ".join([*way[way.index(module) :], module]))
        elif module not in settled:
            for imported in sorted(outgoing.get(module, ())):
                follow(imported, [*way, module])
            settled.add(module)

    for module in sorted(outgoing):
        follow(module, [])
    return circles


def test_no_module_imports_itself_by_way_of_others_not_even_late_or_for_types() -> None:
    # The package itself only names its modules, and imports one when it is asked for the name.
    assert circles_among(found for found in IMPORTS if found.module != "jupyter_agentbox") == []


def test_a_circle_of_imports_is_seen_also_where_one_of_them_is_late_or_for_types() -> None:
    one, two, three = (f"jupyter_agentbox.{name}" for name in ("one", "two", "three"))
    imports = [
        Import(one, two, 1, late=False, for_types=False),
        Import(two, three, 1, late=True, for_types=False),
        Import(three, one, 1, late=False, for_types=True),
        Import(three, "json", 2, late=False, for_types=False),
    ]

    assert circles_among(imports) == [f"{one} -> {two} -> {three} -> {one}"]


def test_the_demo_stands_alone_but_for_the_scripted_model() -> None:
    ours = [
        str(found)
        for found in IMPORTS
        if part_of(found.module) == "demo"
        and is_ours(found.imported)
        and part_of(found.imported) not in {"demo", "testing"}
    ]

    assert ours == []


@pytest.mark.parametrize("part", ["exceptions", "core", "protocol", "testing"])
def test_the_lower_parts_use_the_standard_library_only(part: str) -> None:
    outside = [
        str(found)
        for found in IMPORTS
        if part_of(found.module) == part
        and not is_ours(found.imported)
        and found.imported.split(".")[0] not in sys.stdlib_module_names
    ]

    assert outside == []


@pytest.mark.parametrize("part", ["exceptions", "core", "protocol"])
def test_what_decides_has_no_file_socket_loop_clock_or_random(part: str) -> None:
    impure = [
        str(found)
        for found in IMPORTS
        if part_of(found.module) == part and {found.imported, found.imported.split(".")[0]} & IMPURE
    ]

    assert impure == []


#: What the kernel's side imports only on demand, and says how to get if it is missing.
OPTIONAL_IN_KERNEL = {("kernel.results", "pandas")}


def test_the_kernel_needs_nothing_that_its_environment_may_lack() -> None:
    unsure = [
        str(found)
        for found in IMPORTS
        if part_of(found.module) == "kernel"
        and not is_ours(found.imported)
        and found.imported.split(".")[0] not in {*sys.stdlib_module_names, *KERNEL_PACKAGES}
        and (below(found.module), found.imported) not in OPTIONAL_IN_KERNEL
    ]

    assert unsure == []


def test_an_outside_package_is_known_where_its_adapter_is_and_nowhere_else() -> None:
    astray = [
        str(found)
        for found in IMPORTS
        if not found.for_types
        and part_of(found.module) not in ONLY_IN.get(found.imported.split(".")[0], {part_of(found.module)})
    ]

    assert astray == []


def late_imports() -> set[tuple[str, str]]:
    return {(below(found.module), below(found.imported)) for found in IMPORTS if found.late}


def below(name: str) -> str:
    return name.removeprefix("jupyter_agentbox").removeprefix(".") if is_ours(name) else name


def test_late_imports_are_few_and_each_has_a_reason() -> None:
    assert late_imports() - LATE.keys() == set()


def test_reasons_for_late_imports_are_not_left_behind() -> None:
    assert LATE.keys() - late_imports() == set()


#: Modules that import others by a text, which no type checker follows -> why.
BY_NAME = {
    "": "the names of the package, each from its module, when they are first used",
    "hub": "the authorizer of users' servers, which the service does without",
    "tools": "generated modules, which are in no file",
    "sandbox.inside.bootstrap": "the kernel application that the sandbox's server names",
}


def test_modules_are_imported_by_statements_that_the_type_checker_and_these_tests_see() -> None:
    dynamic = {below(module) for module, path in MODULES.items() if names_in(path) & {"import_module", "__import__"}}

    assert {module for module in dynamic if not module.startswith("demo")} == BY_NAME.keys()


def names_in(path: Path) -> set[str]:
    """Return what a module names: variables, attributes, and what it imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return {getattr(node, field, "") for node in nodes for field in ("id", "attr", "name")}


def test_no_module_is_named_for_having_no_name() -> None:
    assert [name for name in MODULES if name.rpartition(".")[2] in {"utils", "helpers", "common", "misc"}] == []


_TOKENS = {"tokens", "internalTokens"}
#: What each layer of the page may import, besides itself. A feature imports no other one.
PAGE_LAYERS = {
    "api": _TOKENS,
    "tokens": {"api"},
    "internalTokens": {"api", "model", "ui"},
    "model": {"api", *_TOKENS},
    "ui": {"api", *_TOKENS},
    "integrations": {"api", "ui", *_TOKENS},
    "shell": {"ui", *_TOKENS},
    "features": {"api", "model", "ui", "integrations", *_TOKENS},
}


def _page_layer(path: Path) -> str:
    """Return the first folder of a file, or the first two for a feature."""
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] == "features" else parts[0].partition(".")[0]


def test_imports_of_the_page_point_down() -> None:
    source = Path(__file__).parents[1] / "labextension" / "src"
    files = [file for file in source.rglob("*.ts*") if file.name != "index.ts"]
    wrong = []
    for file in files:
        here = file.relative_to(source)
        for name in re.findall(r"from '(\.[^']+)'", file.read_text("utf-8")):
            layer, other = _page_layer(here), _page_layer(Path(os.path.normpath(here.parent / name)))
            if other != layer and other not in PAGE_LAYERS[layer.partition("/")[0]]:
                wrong.append(f"{here}: {other}")
    assert len(files) > 100
    assert not wrong
