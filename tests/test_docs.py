"""Whatever a user can set, call, catch or receive is in the reference, and the pages' tables are shown as tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from jupyter_server.extension.application import ExtensionApp

import jupyter_agentbox
from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.approvals import Answer, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.model_keys import MODEL_KEYS
from jupyter_agentbox.core.tools import ServerState, ServerStatus, ToolDescription
from jupyter_agentbox.exceptions import ERRORS_BY_CODE
from jupyter_agentbox.hub.traits import HubTraits
from jupyter_agentbox.mcp_client.configuration_entries import HttpEntry, StdioEntry
from jupyter_agentbox.sandbox.provisioner import SandboxProvisioner
from tests.samples import a_decision, a_request

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]
REFERENCE = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "docs" / "reference").glob("*.md"))}


def endpoints() -> list[str]:
    """Return the routes as the reference writes them: ``approvals/{id}/decision``."""
    routes = [route for route, *_ in AgentBoxApp.handlers if "jupyter-agentbox" in route]
    names = {"request_id": "id", "grant_id": "id", "thread_id": "id", "turn_id": "id", "question_id": "id"}
    return [
        re.sub(r"\(\?P<(\w+)>[^)]*\)", lambda group: f"{{{names.get(group[1], group[1])}}}", route)
        .removeprefix("/jupyter-agentbox/")
        .removesuffix("/?")
        for route in routes
    ]


def configuration_keys() -> set[str]:
    """Return the keys that the reader of ``mcp.json`` asks for."""
    return {"type", "disabled", *StdioEntry.model_fields, *HttpEntry.model_fields}


def settings_keys() -> set[str]:
    """Return the keys of the lab extension's settings."""
    schemas = [json.loads(path.read_text("utf-8")) for path in (ROOT / "labextension" / "schema").glob("*.json")]
    return {key for schema in schemas for key in schema.get("properties", {})}


def request_fields() -> list[str]:
    """Return the fields of a request as the reference writes them: ``call.digest``."""
    request = a_request()
    request = request.decide(a_decision(request)).with_outcome(Outcome(state=OutcomeState.RUNNING))
    return [
        f"{name}.{part}" if parts else name
        for name, value in request_to_json(request).items()
        for parts in [list(value) if isinstance(value, dict) else []]
        for part in parts or [""]
    ]


@pytest.mark.parametrize(
    "name", sorted(AgentBoxApp.class_traits(config=True).keys() - ExtensionApp.class_traits(config=True).keys())
)
def test_every_trait_is_in_the_reference(name: str) -> None:
    assert f"`AgentBoxApp.{name}`" in REFERENCE["settings"]


@pytest.mark.parametrize("name", sorted(SandboxProvisioner.class_own_traits(config=True)))
def test_every_trait_of_a_sandbox_is_in_the_reference(name: str) -> None:
    assert f"`SandboxProvisioner.{name}`" in REFERENCE["settings"]


@pytest.mark.parametrize("name", sorted(HubTraits.class_own_traits(config=True)))
def test_every_trait_of_the_hub_service_is_in_the_reference(name: str) -> None:
    assert f"`HubService.{name}`" in REFERENCE["hub-service"]


@pytest.mark.parametrize("name", sorted(jupyter_agentbox.__all__))
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert f"`{name}`" in REFERENCE["python"]


@pytest.mark.parametrize(("code", "error"), sorted(ERRORS_BY_CODE.items()), ids=str)
def test_every_exception_is_in_the_reference(code: str, error: type[Exception]) -> None:
    assert f"| `{error.__name__}` | `{code}` |" in REFERENCE["exceptions"]


@pytest.mark.parametrize("endpoint", endpoints())
def test_every_endpoint_is_in_the_reference(endpoint: str) -> None:
    assert re.search(rf"`(GET|POST|PUT|PATCH|DELETE) {re.escape(endpoint)}`", REFERENCE["rest"])


@pytest.mark.parametrize("field", request_fields())
def test_every_field_of_a_request_is_in_the_reference(field: str) -> None:
    assert f"`{field}`" in REFERENCE["rest"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "jupyter_agentbox" / "event_schemas").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_event_and_its_fields_are_in_the_reference(path: Path) -> None:
    schema = yaml.safe_load(path.read_text("utf-8"))
    assert f"`{schema['$id']}`" in REFERENCE["events"]
    assert [name for name in schema["properties"] if f"`{name}`" not in REFERENCE["events"]] == []


def test_every_variable_that_is_kept_from_kernels_is_in_the_reference() -> None:
    assert [name for name in sorted(MODEL_KEYS) if f"`{name}`" not in REFERENCE["settings"]] == []


def test_every_configuration_key_is_in_the_reference() -> None:
    keys = configuration_keys()
    assert {"command", "url", "env", "envFile", "timeout", "disabled"} <= keys
    assert [key for key in sorted(keys) if f"`{key}`" not in REFERENCE["configuration"]] == []


@pytest.mark.parametrize("path", sorted((ROOT / "labextension" / "schema").glob("*.json")), ids=lambda path: path.stem)
def test_settings_begin_with_the_name_that_people_search_for_and_say_what_they_are_about(path: Path) -> None:
    schema = json.loads(path.read_text("utf-8"))
    assert schema["title"].startswith("AgentBox: ")
    assert f"*{schema['title']}*" in REFERENCE["settings"]
    assert "MCP" in schema["description"]
    assert "agent" in schema["description"]


def test_every_setting_of_the_lab_extension_is_in_the_reference() -> None:
    assert [key for key in sorted(settings_keys()) if f"`{key}`" not in REFERENCE["settings"]] == []


@pytest.mark.parametrize("kind", [Status, Answer, Lapse, OutcomeState])
def test_every_status_answer_and_outcome_is_in_the_reference(kind: type[Status]) -> None:
    assert [member.value for member in kind if f"`{member.value}`" not in REFERENCE["approvals"]] == []


def test_every_field_of_a_server_is_in_the_reference() -> None:
    server = ServerStatus(name="shop", state=ServerState.RUNNING, transport="stdio").to_json()
    assert [name for name in server if f'"{name}"' not in REFERENCE["rest"]] == []
    assert [state.value for state in ServerState if f"`{state.value}`" not in REFERENCE["rest"]] == []
    assert [name for name in ToolDescription(name="t").to_json() if f'"{name}"' not in REFERENCE["rest"]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_row_is_in_a_table(page: Path) -> None:
    # An empty line ends a table: the rows after it would be shown as text with bars.
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text) if block.startswith("|")]
    assert [first for first, *rows in blocks if not rows or not re.fullmatch(r"\|[\s:|-]+\|", rows[0])] == []


def hand_written_parts() -> list[tuple[str, int]]:
    """Return the rows of the decision record that name whole files or directories, with the lines they say."""
    page = (ROOT / "docs" / "explanation" / "decisions" / "hand-written-parts.md").read_text("utf-8")
    found = re.findall(r"^\| (?P<part>[^|]*`[^|]*), (?P<lines>[\d,]+) \|", page, re.MULTILINE)
    return [(part, int(lines.replace(",", ""))) for part, lines in found if ", in `" not in part]


@pytest.mark.parametrize(("part", "lines"), hand_written_parts())
def test_what_is_written_by_hand_is_about_as_long_as_its_record_says(part: str, lines: int) -> None:
    count, place = 0, ROOT
    for name in re.findall(r"`([\w/.]+(?:\.\w+|/))`", part):
        path = next(one for one in (ROOT / "jupyter_agentbox" / name, ROOT / name, place / name) if one.exists())
        place = path.parent
        files = path.glob("*.py") if path.is_dir() else [path]
        count += sum(len(one.read_text("utf-8").splitlines()) for one in files)
    assert 0.8 * lines <= count <= 1.2 * lines, f"{part} has {count} lines: does the reason for it still hold?"
