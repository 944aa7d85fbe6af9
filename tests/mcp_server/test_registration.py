from __future__ import annotations

from typing import Any

from jupyter_agentbox.mcp_client.registration import masked
from jupyter_agentbox.mcp_server import registration


def test_the_question_shows_everything_but_the_values_of_secrets() -> None:
    configuration: Any = {
        "command": "/bin/server",
        "args": ["--all", "${HOME}"],
        "env": {
            "API_KEY": "s3cr3t-1",
            "DB_PASSWORD": "s3cr3t-2",
            "GIT_ASKPASS": "/tmp/program",
            "LD_PRELOAD": "/tmp/lib.so",
            "TOKEN": "${MY_TOKEN}",
        },
    }

    text = registration.question({"name": "shop", "configuration": masked(configuration)}).text

    assert "s3cr3t" not in text
    for shown in ("shop", "/bin/server", "--all", "/tmp/program", "/tmp/lib.so", "API_KEY", "${MY_TOKEN}"):
        assert shown in text
