from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_agentbox.mcp_client.credential_variables import credential_variables


def test_all_variables_are_found_whose_names_tell_of_a_secret_also_in_a_file_that_does_not_parse(
    tmp_path: Path,
) -> None:
    whole, broken = tmp_path / "mcp.json", tmp_path / ".mcp.json"
    whole.write_text('{"a": "Bearer ${A_TOKEN}${env:B_KEY}", "b": "${PLACE} ${SSH_AUTH_SOCK} ${input:X_TOKEN}"}')
    broken.write_text('{"a": "${C_SECRET:-none}", ')
    assert credential_variables([whole, broken, tmp_path / "missing.json"]) == {"A_TOKEN", "B_KEY", "C_SECRET"}


@pytest.mark.timeout(60)
def test_a_pipe_in_the_place_of_the_file_makes_nobody_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    assert credential_variables([tmp_path / ".mcp.json", tmp_path]) == frozenset()
