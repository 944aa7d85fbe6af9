from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_agentbox.agents.threads.keys import find_key
from jupyter_agentbox.exceptions import AgentConfigurationError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model-keys.json"
    path.write_text(json.dumps({"openai": "from the file"}))
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Stand in for the keyring of the operating system, which tests leave alone."""
    kept: dict[str, str] = {}
    module = SimpleNamespace(get_password=lambda service, name: kept.get(f"{service} {name}"))
    monkeypatch.setitem(sys.modules, "keyring", module)
    return kept


def test_a_key_comes_from_the_environment_then_the_file_then_the_keyring(file: Path, keyring: dict[str, str]) -> None:
    keyring["jupyter-agentbox anthropic"] = "from the keyring"
    environment = {"OPENAI_API_KEY": "from the environment"}

    assert find_key("openai", environment=environment, file=file) == "from the environment"
    assert find_key("openai-chat", environment={}, file=file) == "from the file"
    assert find_key("anthropic", environment={}, file=file) == "from the keyring"
    assert find_key("openai", environment={}, file=None) is None


def test_a_keyring_that_fails_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_service: str, _name: str) -> str:
        raise RuntimeError("locked")

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=fail))

    assert find_key("openai", environment={}, file=None) is None


def test_a_file_that_others_can_read_is_refused(file: Path) -> None:
    file.chmod(0o640)

    with pytest.raises(AgentConfigurationError, match="chmod 600"):
        find_key("openai", environment={}, file=file)


@pytest.mark.parametrize("text", ["sk-secret", "[]", '{"openai": ["sk-secret"]}'])
def test_a_file_that_is_none_is_refused_without_a_word_of_what_is_in_it(text: str, file: Path) -> None:
    file.write_text(text)

    with pytest.raises(AgentConfigurationError, match="as JSON") as caught:
        find_key("openai", environment={}, file=file)
    assert "sk-secret" not in str(caught.value)
