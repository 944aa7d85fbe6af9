"""Which scopes of JupyterHub allow what at a user's server, with the Hub's own code and no Hub."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from jupyter_server.auth import IdentityProvider, User
from jupyterhub.services.auth import HubOAuth
from jupyterhub.singleuser.extension import JupyterHubIdentityProvider, JupyterHubUser

from jupyter_agentbox.app.routes import ROUTES
from jupyter_agentbox.core.reviewers import DECIDE_SCOPE, MANAGE_SCOPE, READ_SCOPE
from jupyter_agentbox.hub import ScopeAuthorizer
from jupyter_agentbox.hub.scope_authorizer import scope_for

pytestmark = [
    pytest.mark.filterwarnings("ignore:HubAuth.oauth_scopes"),
    pytest.mark.filterwarnings("ignore:.*combinations of filters present"),  # the Hub does so of `!group=`
]

ACCESS = "access:servers!server=ada/gpu"
APPROVALS, POLICY = "jupyter_agentbox:approvals", "jupyter_agentbox:policy"


@pytest.fixture
def authorizer(monkeypatch: pytest.MonkeyPatch) -> ScopeAuthorizer:
    """The authorizer of Ada's server `gpu`."""
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    monkeypatch.setenv("JUPYTERHUB_SERVER_NAME", "gpu")
    allowed = json.dumps([READ_SCOPE, DECIDE_SCOPE, MANAGE_SCOPE])
    monkeypatch.setenv("JUPYTERHUB_OAUTH_CLIENT_ALLOWED_SCOPES", allowed)
    provider = JupyterHubIdentityProvider(hub_auth=HubOAuth(access_scopes={ACCESS}))
    return ScopeAuthorizer(identity_provider=provider)


def user_with(*scopes: str) -> JupyterHubUser:
    return JupyterHubUser({"name": "bob", "kind": "user", "scopes": [*scopes]})


@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        (DECIDE_SCOPE, True),
        (f"{DECIDE_SCOPE}!user=ada", True),
        (f"{DECIDE_SCOPE}!server=ada/gpu", True),
        (f"{DECIDE_SCOPE}!user=bob", False),
        (f"{DECIDE_SCOPE}!server=ada/", False),
        (f"{DECIDE_SCOPE}!server=bob/gpu", False),
        (f"{DECIDE_SCOPE}!group=stewards", False),
        (READ_SCOPE, False),
        (MANAGE_SCOPE, False),
        ("custom:agentbox:decided", False),
    ],
)
def test_a_scope_counts_for_this_server_only(authorizer: ScopeAuthorizer, scope: str, counts: bool) -> None:
    handler = SimpleNamespace(missing_scope="")

    assert authorizer.is_authorized(handler, user_with(ACCESS, scope), "write", APPROVALS) is counts
    assert handler.missing_scope == ("" if counts else DECIDE_SCOPE)


def test_no_scope_replaces_the_right_to_use_the_server(authorizer: ScopeAuthorizer) -> None:
    user = user_with(READ_SCOPE, DECIDE_SCOPE, MANAGE_SCOPE)
    assert not authorizer.is_authorized(SimpleNamespace(), user, "read", APPROVALS)
    assert not authorizer.is_authorized(SimpleNamespace(), user, "read", "contents")


@pytest.mark.parametrize(("action", "resource"), [("write", "contents"), ("execute", "kernels"), ("read", "events")])
def test_the_resources_of_others_need_the_right_to_use_the_server_only(
    authorizer: ScopeAuthorizer, action: str, resource: str
) -> None:
    assert authorizer.is_authorized(SimpleNamespace(), user_with(ACCESS), action, resource)


@pytest.mark.parametrize(
    ("action", "resource", "scope"),
    [
        ("read", APPROVALS, READ_SCOPE),
        ("read", "jupyter_agentbox:audit", READ_SCOPE),
        ("read", POLICY, READ_SCOPE),
        ("write", APPROVALS, DECIDE_SCOPE),
        ("write", POLICY, MANAGE_SCOPE),
        ("write", "jupyter_agentbox:grants", MANAGE_SCOPE),
        ("write", "jupyter_agentbox:servers", MANAGE_SCOPE),
        ("write", "jupyter_agentbox:threads", MANAGE_SCOPE),
        ("execute", "jupyter_agentbox:approvals", DECIDE_SCOPE),
        ("write", "jupyter_agentbox:of_a_later_release", MANAGE_SCOPE),
        ("read", "jupyter_agentbox:of_a_later_release", READ_SCOPE),
        ("read", "jupyter_agentbox:kernels", None),
        ("write", "jupyter_agentbox:kernels", MANAGE_SCOPE),
    ],
)
def test_each_action_has_one_scope(action: str, resource: str, scope: str | None) -> None:
    assert scope_for(action, resource) == scope


def test_every_route_has_a_resource_that_the_authorizer_knows_as_this_extensions() -> None:
    assert all(handler.auth_resource.startswith("jupyter_agentbox:") for _, handler in ROUTES)


def test_without_a_hub_everything_is_refused() -> None:
    authorizer = ScopeAuthorizer(identity_provider=IdentityProvider())
    for resource in (APPROVALS, "contents"):
        assert not authorizer.is_authorized(SimpleNamespace(), User(username="ada"), "read", resource)


def test_a_user_of_whom_the_hub_says_nothing_is_refused(authorizer: ScopeAuthorizer) -> None:
    assert not authorizer.is_authorized(SimpleNamespace(), User(username="ada"), "read", "contents")


def test_a_hub_that_gives_browsers_no_scope_is_told_of_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JUPYTERHUB_OAUTH_CLIENT_ALLOWED_SCOPES", json.dumps([DECIDE_SCOPE]))
    ScopeAuthorizer(identity_provider=IdentityProvider())

    named = [record.getMessage().partition("`")[2].partition("`")[0] for record in caplog.records]
    assert named == [READ_SCOPE, MANAGE_SCOPE]
