"""Headers with a token of a user's sign-in to a real JupyterHub."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .hub import COLLABORATOR, OWNER, STRANGER, Hub

FIRST, SECOND = "gho_the-first-token", "gho_the-second-token"


def headers(hub: Hub, directory: Path, *options: str, token: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command with a file that holds a token of the Hub."""
    file = directory / "token"
    file.write_text(f"{token or hub.admin}\n")
    command = [sys.executable, "-m", "jupyter_agentbox.cli", "auth-state-headers"]
    command += [f"--api-url={hub.url}hub/api", f"--token-file={file}", *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_each_user_has_the_token_of_their_own_sign_in_and_a_new_one_counts_at_once(hub: Hub, tmp_path: Path) -> None:
    hub.api(f"users/{OWNER}", {"auth_state": {"access_token": FIRST}}, "PATCH")
    hub.api(f"users/{COLLABORATOR}", {"auth_state": {"access_token": SECOND, "more": {"id": "i"}}}, "PATCH")
    assert json.loads(headers(hub, tmp_path, f"--user={OWNER}").stdout) == {"Authorization": f"Bearer {FIRST}"}
    assert SECOND in headers(hub, tmp_path, f"--user={COLLABORATOR}").stdout
    other = headers(hub, tmp_path, f"--user={COLLABORATOR}", "--key=more.id", "--header=X-Token", "--scheme=")
    assert json.loads(other.stdout) == {"X-Token": "i"}

    hub.api(f"users/{OWNER}", {"auth_state": {"access_token": SECOND}}, "PATCH")
    assert SECOND in headers(hub, tmp_path, f"--user={OWNER}").stdout

    told = headers(hub, tmp_path, f"--user={OWNER}", "--key=refresh_token")
    assert (told.returncode, told.stdout) == (1, "")
    assert "has no text `refresh_token`" in told.stderr
    assert SECOND not in told.stderr


@pytest.mark.parametrize(
    ("user", "whose", "why"),
    [
        (STRANGER, "admin", "the Hub has no auth state of"),
        ("nobody", "admin", "it has no user `nobody`"),
        (OWNER, "robot", "the scope `admin:auth_state`"),
        (OWNER, "unknown", "it does not know the token"),
    ],
)
def test_what_is_missing_is_said(hub: Hub, tmp_path: Path, user: str, whose: str, why: str) -> None:
    told = headers(hub, tmp_path, f"--user={user}", token=getattr(hub, whose, whose))

    assert (told.returncode, told.stdout) == (1, "")
    assert why in told.stderr
