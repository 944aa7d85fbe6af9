"""Schemathesis sends what `openapi.yaml` allows, and what it does not, to a server: no answer is an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

import jupyter_agentbox
from tests.browser.lab import Lab, running_lab

DOCUMENT: Final = yaml.safe_load((Path(jupyter_agentbox.__file__).parent / "openapi.yaml").read_text("utf-8"))
SCHEMA: Final = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS: Final = {found.label: found for found in (result.ok() for result in SCHEMA.get_all_operations())}
#: What answers are checked for. An id that no id can be leads to no handler of ours, and Jupyter answers with a page.
CHECKS: Final = {
    GenerationMode.POSITIVE: [not_a_server_error, response_schema_conformance, content_type_conformance],
    GenerationMode.NEGATIVE: [not_a_server_error],
}
#: Starting a server takes a second: only servers that are not there are asked about.
EXAMPLES: Final = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="module")
def known(lab: Lab) -> dict[str, str]:
    """Ids of what there is: half of the examples are about them."""
    body = {"name": "other", "configuration": {"command": "no-such-program"}}
    request = lab.ask("jupyter-agentbox/registrations", body)
    return {"id": request["id"], "kernel_id": "nobody", "name": "nobody"}


def modes() -> Iterator[Any]:
    """Yield what is sent to each operation: what the document allows and, where that is possible, what it does not."""
    for label, operation in sorted(OPERATIONS.items()):
        yield pytest.param(label, GenerationMode.POSITIVE, id=f"{label}-positive")
        if list(operation.body) or list(operation.query) or "{id}" in label:
            yield pytest.param(label, GenerationMode.NEGATIVE, id=f"{label}-negative")


@pytest.mark.parametrize(("label", "mode"), list(modes()))
def test_answers_are_those_of_the_document(lab: Lab, known: dict[str, str], label: str, mode: GenerationMode) -> None:
    operation = OPERATIONS[label]

    @EXAMPLES
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        response = case.call(
            base_url=f"{lab.url}jupyter-agentbox", headers={"Authorization": f"token {lab.token}"}, timeout=30
        )
        case.validate_response(response, checks=CHECKS[mode])

    send()
    assert lab.ask("jupyter-agentbox/servers")["servers"], "the server lives"
