from __future__ import annotations

from jupyter_agentbox.core.model_keys import MODEL_KEYS, without_model_keys


def test_an_environment_keeps_everything_but_the_keys_of_models() -> None:
    keys = dict.fromkeys([*MODEL_KEYS, "openai_api_key"], "secret")
    assert without_model_keys({**keys, "HOME": "/", "MY_API_KEY": "mine"}) == {"HOME": "/", "MY_API_KEY": "mine"}
