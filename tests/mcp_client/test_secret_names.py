from __future__ import annotations

import pytest

from jupyter_agentbox.mcp_client.secret_names import is_secret, may_hide_variable


@pytest.mark.parametrize(
    "name",
    [
        *(
            "API_KEY",
            "SHOP_PASSWORD",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "TOKEN_1",
            "SESSION_COOKIE",
            "PGPASSWORD",
        ),
        *("DB_PASSWORD_PROD", "NPM_AUTH_TOKEN", "NODE_AUTH_TOKEN"),
    ],
)
def test_variables_that_tell_of_a_secret_may_be_hidden(name: str) -> None:
    assert may_hide_variable(name)
    assert is_secret(name.lower())


@pytest.mark.parametrize(
    "name",
    [
        *(
            "BASH_FUNC_check_pass%%",
            "BASH_FUNC_PASS",
            "BASH_ENV",
            "ENV",
            "PROMPT_COMMAND",
            "KEY=VALUE",
            "API KEY",
            "KEY\u0410",
        ),
        *("GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_COUNT", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS"),
        *("GIT_SSH_COMMAND", "LD_PRELOAD", "LD_AUDIT_KEY", "DYLD_INSERT_LIBRARIES_KEY", "PYTHONPATH", "PYTHONSECRET"),
        *("PYTHON_KEYRING_BACKEND", "NODE_OPTIONS", "KEY_NODE_OPTIONS", "RUBYOPT", "PERL5OPT", "JAVA_TOOL_OPTIONS"),
        *("TOKEN_COMMAND", "AUTH_CMD", "CREDENTIAL_HELPER", "SECRET_FILE", "KEY_PATH", "AWS_CREDENTIAL_PROCESS"),
        *(
            "DBUS_SESSION_BUS_ADDRESS",
            "SSLKEYLOGFILE",
            "GOAUTH",
            "CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS",
            "LESSKEY",
        ),
        *(
            "XAUTHORITY",
            "AUTH_URL",
            "KEY_SERVER",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ),
        *("DOCKER_AUTH_CONFIG", "SSH_AUTH_SOCK", "UV_KEYRING_PROVIDER", "PWD", "OLDPWD", "HOME", "MODE", "api_key"),
    ],
)
def test_what_runs_or_is_obeyed_is_never_hidden(name: str) -> None:
    assert not may_hide_variable(name)
