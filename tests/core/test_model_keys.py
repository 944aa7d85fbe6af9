from __future__ import annotations

from jupyter_agentbox.core.model_keys import without_keys


def test_models_keys_are_taken_out_of_an_environment_but_those_that_are_kept() -> None:
    environment = {"PATH": "/bin", "OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "MY_API_KEY": "c"}

    assert without_keys(environment, kept=["ANTHROPIC_API_KEY"]) == {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "b",
        "MY_API_KEY": "c",
    }
