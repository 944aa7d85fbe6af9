from __future__ import annotations

import pytest

from jupyter_agentbox.core.secret_names import is_secret_name


@pytest.mark.parametrize("name", ["token", "apiKey", "API_KEY", "user-password", "accessKey", "jwt"])
def test_name_tells_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["key", "primary_key", "tokenizer", "author", "passenger"])
def test_name_tells_of_none(name: str) -> None:
    assert not is_secret_name(name)
