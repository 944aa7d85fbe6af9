"""Finds a model's key: in the environment, in a private file, or in the operating system's keyring."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupyter_agentbox import paths
from jupyter_agentbox.exceptions import AgentConfigurationError

from .model_providers import KEY_VARIABLES

#: The name under which the keyring has the keys; the user's name there is the provider's, such as ``openai``.
KEYRING_SERVICE: Final = "jupyter-agentbox"


def account_of(provider: str) -> str:
    """Return the provider whose key a provider's models need: `openai-chat` is another interface of `openai`."""
    return provider.removesuffix("-chat")


def key_of(provider: str) -> str | None:
    """Return this process's key for a provider's models, from the first place that has one.

    Parameters
    ----------
    provider : str
        Such as ``openai``, or ``openai-chat``.

    Raises
    ------
    AgentConfigurationError
        Others can read the file of keys, or it is not a valid file of keys.
    """
    return find_key(provider, environment=os.environ, file=paths.config_dir() / "model-keys.json")


def find_key(provider: str, *, environment: Mapping[str, str], file: Path | None) -> str | None:
    """Return the key for a provider's models, from the first place that has one.

    Parameters
    ----------
    provider : str
        Such as ``openai``, or ``openai-chat``.
    environment : mapping
        The environment's variables.
    file : Path or None
        A JSON file that only its owner can read: ``{"openai": "…", "anthropic": "…"}``.

    Raises
    ------
    AgentConfigurationError
        Others can read the file, or it is not a valid file of keys.
    """
    account = account_of(provider)
    return environment.get(KEY_VARIABLES[provider]) or _from_file(account, file) or _from_keyring(account)


def _from_file(account: str, file: Path | None) -> str | None:
    if file is None or not file.exists():
        return None
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise AgentConfigurationError(
            f"other users can read `{file}`, which holds the API keys of models: run `chmod 600 {file}`"
        )
    try:
        keys = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # its text stays out of the message: it has keys
        keys = None
    key = keys.get(account) if isinstance(keys, dict) else None
    if not isinstance(keys, dict) or not isinstance(key, str | None):
        raise AgentConfigurationError(f'`{file}` must hold the API keys of models as JSON: {{"{account}": "the key"}}')
    return key


def _from_keyring(account: str) -> str | None:
    try:
        import keyring  # noqa: PLC0415  # optional, and slow where it asks another program
    except ImportError:
        return None
    try:
        key: str | None = keyring.get_password(KEYRING_SERVICE, account)
    except Exception:  # noqa: BLE001  # its back ends raise anything; a keyring that is locked has no key for us
        return None
    return key
