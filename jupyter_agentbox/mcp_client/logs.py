"""An MCP server's log output, without the secrets of its configuration."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.core.tools import LogMessage

#: Secrets up to this length are not removed: that would make text unreadable and protect little.
SHORTEST: Final = 4
#: Secrets of these lengths are also removed where they are encoded: searching for longer ones would take too long.
_SHORTEST_ENCODED: Final = 8
_LONGEST_ENCODED: Final = 512
#: Maximum number of values that are learned later.
_MOST_LEARNED: Final = 100
#: Maximum length of a line, in characters.
LONGEST_LINE: Final = 2000
#: How many characters of a log message are examined.
LONGEST_LOG_MESSAGE: Final = 16 * 1024
_LONGEST_NAME: Final = 100


class Redactor:
    """Replaces secrets in text by ``***``.

    Parameters
    ----------
    secrets : iterable of str
        Values to replace, from a person's configuration. Each line of a value is also replaced on its own, because logs
        are read by line, and each value also as JSON writes it, because logs contain JSON, as URLs do, in hexadecimal
        digits, and in base64, alone or within other text, as headers with a password have it. Not so those that are
        learned later, apart from JSON: providers choose them, and could make the search slow.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)
        self._learned: deque[str] = deque(maxlen=_MOST_LEARNED)
        self._encoded = _encoded(self._secrets)
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self._compile()

    def learn(self, *secrets: str) -> None:
        """Add values to replace from now on, in place of the oldest if there are many: a token may last a second."""
        new = [secret for secret in secrets if secret not in self._secrets and secret not in self._learned]
        if new:
            self._learned.extend(new)
            self._compile()

    def _compile(self) -> None:
        parts = {part for part in _parts((*self._secrets, *self._learned)) if len(part) > SHORTEST}
        written = {form for part in parts for form in (part, *_in_json(part))}
        patterns = {re.escape(form): len(form) for form in written} | self._encoded
        # longest first, so that a secret containing another one is replaced as a whole
        found = sorted(patterns, key=patterns.__getitem__, reverse=True)
        self._longest = max(patterns.values(), default=0)
        self._pattern = re.compile("|".join(found)) if found else None

    def __repr__(self) -> str:
        return "Redactor(***)"

    def __call__(self, text: str) -> str:
        """Return the text without the secrets."""
        return self._pattern.sub("***", text) if self._pattern else text

    def head(self, text: str, length: int) -> str:
        """Return the first characters of a text, without the secrets that begin in them; the rest is hardly examined.

        A text that is cut first ends with a part of a secret that would not be found any more.
        """
        parts, end = [], 0
        for match in self._pattern.finditer(text, 0, length + self._longest) if self._pattern else ():
            if match.start() >= length:
                break
            parts += [text[end : match.start()], "***"]
            end = match.end()
        return "".join([*parts, text[end:length]])[:length]


def _in_json(text: str) -> set[str]:
    """Return a text as it is written in JSON: with and without characters that are not ASCII, and slashes as in PHP."""
    written = {json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}
    return {form for one in written for form in (one, one.replace("/", r"\/"))}


def _parts(secrets: Iterable[str]) -> set[str]:
    """Return secrets, and each of their lines."""
    return {part.strip() for secret in secrets for part in (secret, *secret.splitlines())}


def _encoded(secrets: Iterable[str]) -> dict[str, int]:
    """Return patterns of secrets as they are encoded, with the maximum length of what each matches."""
    patterns: dict[str, int] = {}
    for part in _parts(secrets):
        if _SHORTEST_ENCODED <= len(part) <= _LONGEST_ENCODED:
            patterns |= {re.escape(form): len(form) for form in _in_base64(part)}
            patterns[_in_url(part)] = 3 * len(_bytes(part))
            patterns[f"(?i:{_bytes(part).hex()})"] = 2 * len(_bytes(part))
    return patterns


def _in_url(text: str) -> str:
    """Return a pattern of a text as it is in URLs, where programs differ in what they encode."""

    def pattern(character: str) -> str:
        if character.isascii() and character.isalnum():
            return character
        codes = "".join(f"%{code:02x}" for code in _bytes(character))
        forms = [re.escape(character), f"(?i:{codes})", *([r"\+"] if character == " " else [])]
        return f"(?:{'|'.join(forms)})"

    return "".join(map(pattern, text))


def _in_base64(text: str) -> list[str]:
    """Return a text in base64, wherever it begins, also as it is when it was put into a URL before."""
    forms = []
    for data in {_bytes(text), quote(_bytes(text), safe="").encode(), quote_plus(_bytes(text)).encode()}:
        for before in range(3):
            whole = b64encode(bytes(before) + data).decode()
            # What the first and the last character stand for begins or ends outside of the text.
            own = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
            forms += [own, own.replace("+", "-").replace("/", "_"), own.replace("/", r"\/")]
    return forms


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


class LogRing:
    """Ring buffer of a server's last log lines.

    Parameters
    ----------
    lines : int
        How many lines are kept.
    redact : Redactor
        Applied to each line before it is stored.
    """

    def __init__(self, lines: int, redact: Redactor) -> None:
        self._lines: deque[tuple[str, bool]] = deque(maxlen=lines)
        self._redact = redact
        #: How many lines were added; below, before each process of the present start.
        self._added = 0
        self._processes = [0]

    def add(self, text: str) -> None:
        """Add a line."""
        self._add(text, is_quoted=True)

    def add_unquoted(self, text: str) -> str:
        """Add a line that `tail` leaves out, so that no error has it; return it as it is kept."""
        return self._add(text, is_quoted=False)

    def _add(self, text: str, *, is_quoted: bool) -> str:
        line = self._redact(without_controls(text.rstrip("\r\n")).replace("\n", " "))
        if len(line) > LONGEST_LINE:
            line = line[:LONGEST_LINE] + f" … ({len(line)} characters)"
        if line.strip():
            self._lines.append((line, is_quoted))
            self._added += 1
        return line

    def begin(self, *, again: str = "") -> None:
        """Have `tail` return only what a new process says.

        Parameters
        ----------
        again : str
            A line that says why the same start needs another process. If this one says nothing, `tail` returns what
            the one before it said.
        """
        self.add(again)
        self._processes = [*(self._processes if again else ()), self._added]

    def lines(self) -> tuple[str, ...]:
        """Return the lines, oldest first."""
        return tuple(line for line, _ in self._lines)

    def tail(self, count: int = 5) -> str:
        """Return the process's last lines as text to append to an error message; empty if there are none."""
        new = next((self._added - before for before in reversed(self._processes) if before < self._added), 0)
        quoted = [line for line, is_quoted in list(self._lines)[-new:] if is_quoted] if new else []
        return "".join(f"\n    {line}" for line in quoted[-count:])


def read_log_message(params: Mapping[str, Any], redact: Redactor) -> LogMessage:
    """Parse a ``notifications/message``, whatever it contains, and remove secrets."""
    return LogMessage(
        level=redact.head(as_text(params.get("level", "info")), _LONGEST_NAME),
        logger=redact.head(as_text(params.get("logger") or ""), _LONGEST_NAME),
        text=redact.head(as_text(params.get("data")), LONGEST_LOG_MESSAGE),
    )


def as_text(value: object) -> str:
    """Return a text as it is, and other values as JSON, of which a `Redactor` knows how it writes secrets."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
