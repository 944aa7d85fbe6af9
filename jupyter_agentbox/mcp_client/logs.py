"""What an MCP server wrote beside its messages, with the secrets of its configuration removed."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.core.tools import LogMessage

#: Secrets are longer than this many characters; removing shorter ones would make text unreadable and protects little.
SHORTEST: Final = 4
#: Lines are cut after this many characters.
LONGEST_LINE: Final = 2000
#: How much of a log message is looked at, in characters.
LONGEST_LOG_MESSAGE: Final = 16 * 1024
_LONGEST_NAME: Final = 100


class Redactor:
    """Replaces secrets in text by ``***``.

    Parameters
    ----------
    secrets : iterable of str
        Values to replace. Each line of a value counts by itself too, because logs are read by the line.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = set(secrets)
        self._pattern: re.Pattern[str] | None = None
        self._compile()

    def learn(self, secret: str) -> None:
        """Replace one more value from now on."""
        if secret not in self._secrets:
            self._secrets.add(secret)
            self._compile()

    def _compile(self) -> None:
        parts = {part.strip() for secret in self._secrets for part in (secret, *secret.splitlines())}
        # the longest first, so that a secret that contains another one is replaced as a whole
        found = sorted((part for part in parts if len(part) > SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, found))) if found else None

    def __repr__(self) -> str:
        return "Redactor(***)"

    def __call__(self, text: str) -> str:
        """Return the text without the secrets."""
        return self._pattern.sub("***", text) if self._pattern else text


class LogRing:
    """The last lines of a server's log.

    Parameters
    ----------
    lines : int
        How many are kept.
    redact : Redactor
        Applied to each line before it is kept.
    """

    def __init__(self, lines: int, redact: Redactor) -> None:
        self._lines: deque[str] = deque(maxlen=lines)
        self._redact = redact

    def add(self, text: str) -> None:
        """Keep a line."""
        line = self._redact(without_controls(text.rstrip("\r\n")).replace("\n", " "))
        if len(line) > LONGEST_LINE:
            line = line[:LONGEST_LINE] + f" … ({len(line)} characters)"
        if line.strip():
            self._lines.append(line)

    def lines(self) -> tuple[str, ...]:
        """Return the kept lines, oldest first."""
        return tuple(self._lines)

    def tail(self, count: int = 5) -> str:
        """Return the last lines as text to append to an error message; empty if there are none."""
        last = list(self._lines)[-count:]
        return "".join(f"\n    {line}" for line in last)


def read_log_message(params: Mapping[str, Any]) -> LogMessage:
    """Return what a ``notifications/message`` says, whatever is in it."""
    data = params.get("data")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    return LogMessage(
        level=str(params.get("level", "info"))[:_LONGEST_NAME],
        logger=str(params.get("logger") or "")[:_LONGEST_NAME],
        text=text[:LONGEST_LOG_MESSAGE],
    )
