from __future__ import annotations

import pytest

from jupyter_agentbox.core.kernel_environment import is_server_token, without_credentials


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("JUPYTERHUB_API_TOKEN", True),
        ("JPY_API_TOKEN", True),
        ("JPY_SESSION_SECRET", True),
        ("JUPYTER_TOKEN", True),
        ("JUPYTERHUB_COOKIE_SECRET", True),
        ("JUPYTERHUB_CRYPT_KEY", True),
        ("CONFIGPROXY_AUTH_TOKEN", True),
        ("JUPYTERHUB_USER", False),
        ("JUPYTERHUB_SERVICE_PREFIX", False),
        ("JPY_SESSION_NAME", False),
        ("JPY_PARENT_PID", False),
        ("JUPYTER_CONFIG_DIR", False),
        ("GITHUB_TOKEN", False),
    ],
)
def test_tokens_of_the_server_are_known_by_their_names(name: str, is_one: bool) -> None:
    assert is_server_token(name) is is_one


def test_what_is_kept_stays_whatever_it_holds() -> None:
    environment = {"JUPYTER_TOKEN": "a", "SHOP_TOKEN": "b", "OPENAI_API_KEY": "c", "HOME": "/"}
    assert without_credentials(environment, of_mcp_servers=["SHOP_TOKEN"]) == {"HOME": "/"}
    assert without_credentials(environment, of_mcp_servers=["SHOP_TOKEN"], kept=list(environment)) == environment
    assert without_credentials(environment, keeps_model_keys=True) == {
        "SHOP_TOKEN": "b",
        "OPENAI_API_KEY": "c",
        "HOME": "/",
    }
