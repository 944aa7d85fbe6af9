"""The setting with the addresses of audit sinks."""

from __future__ import annotations

from typing import Any

import pytest
from traitlets import TraitError

from jupyter_agentbox.app.server_traits import ServerTraits
from jupyter_agentbox.hub.app import HubService

ADDRESS = "https://user:hunter2@log.example/"


@pytest.mark.parametrize("given", [{"a": ADDRESS}, [[ADDRESS]], [7, ADDRESS], {ADDRESS}])
@pytest.mark.parametrize("application", [HubService, ServerTraits])
def test_an_error_about_the_type_of_addresses_does_not_contain_them(application: type[Any], given: object) -> None:
    with pytest.raises(TraitError, match="audit_sinks` must be a list of addresses") as refused:
        application(audit_sinks=given)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("application", [HubService, ServerTraits])
def test_a_list_of_addresses_is_one(application: type[Any]) -> None:
    assert application(audit_sinks=[ADDRESS]).audit_sinks == [ADDRESS]
