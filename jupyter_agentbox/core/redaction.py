"""Redaction of secrets in records: values with telling names, and texts that look like credentials.

Only stored data is redacted. Calls run, and are shown for decision, as requested.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import translate
from itertools import pairwise
from typing import Final

from .approvals import ApprovalRequest
from .calls import JsonValue, ToolCall
from .command_lines import secrets_in_text, secrets_in_words
from .questions import OpenQuestion, QuestionAnswer, QuestionRecord

#: Placeholder for a secret.
REDACTED: Final = "[redacted]"

#: Names of secret values: of parameters, keys within values, headers and variables. In lower case, with underscores
#: between words.
SECRET_NAMES: Final = (
    *("*password*", "*passwd*", "*passphrase*", "*passcode*", "pass", "*_pass", "pwd", "*_pwd"),
    *("*secret*", "*credential*", "token", "*_token", "*authorization*", "auth", "*_auth", "bearer", "jwt"),
    *(
        "*api_key*",
        "*apikey*",
        "*access_key*",
        "*private_key*",
        "*signing_key*",
        "*encryption_key*",
        "*account_key*",
        "*ssh_key*",
        "*auth_key*",
    ),
    *("cookie", "*_cookie", "cookies", "*session_key*", "connection_string", "*_connection_string"),
)

#: Minimum length of a secret that is searched for in other texts: shorter ones would be found everywhere.
_SHORTEST: Final = 4
#: Maximum number of secrets of a call that are searched for in its other texts. If there are more, each of these texts
#: is redacted entirely: the search would take too long.
_MOST_SECRETS: Final = 100

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Tokens with known formats, and PEM keys.
_TOKENS: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{30,})"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
#: A JSON Web Token. Each word is read from its start, and only once, so that the time taken is linear.
_WEB_TOKEN: Final = re.compile(r"(?<![\w-])((?:(?!\beyJ)[\w-])*+)eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+")
_SCHEMES: Final = re.compile(r"(?:bearer|basic|token)[ \t]{1,4}", re.IGNORECASE)
_SCHEME: Final = re.compile(r"\b((?:bearer|basic|token)[ \t]+)[\w.~+/=-]{8,}", re.IGNORECASE)
#: The password in a URL.
_IN_ADDRESS: Final = re.compile(r"(://[^\s:/@]{0,200}:)[^\s/\"']{1,500}(?=@)")
_SCHEME_NAME: Final = r"(?:basic|bearer|digest|token|negotiate|ntlm|hawk|dpop|oauth|api-?key|aws4-[\w-]{1,20})"
#: An authentication scheme before its redacted value: ``Authorization: Digest [redacted]``.
_BEFORE_SECRET: Final = re.compile(rf"{_SCHEME_NAME} {re.escape(REDACTED)}", re.IGNORECASE)
#: The start of a header whose entire value is secret: on a line of its own, or quoted, as in commands.
_HEADER: Final = re.compile(
    r"""(?:^|(?<=^[<>][ ])|(?P<quote>\\?["']))(?P<name>(?:proxy-)?authorization|(?:set-)?cookie)[ \t]{0,4}:[ \t]{0,4}"""
    rf"""(?P<scheme>{_SCHEME_NAME}[ \t]{{1,4}})?"""
    r"""(?P<value>(?(quote)(?:(?!(?P=quote))[^\r\n])+|[^\r\n]+))""",
    re.IGNORECASE | re.MULTILINE,
)
#: A name and its value, as in shells, headers and most languages. A short unquoted value is usually the name of a
#: type.
_NAMED: Final = re.compile(r"""(?<![\w-])-{0,2}([A-Za-z_][\w-]{0,100})\\?["']?\]?[ \t]{0,4}(?::=|[=:])[ \t]{0,4}""")
#: A command option, before the word that is its value.
_OPTION: Final = re.compile(r"""(?<![\w-])--?([A-Za-z][\w-]{0,100})(?:[ \t]{1,4}|\\?["'],[ \t]{0,4})(?!-)""")
_OPTION_ALONE: Final = re.compile(r"--?([A-Za-z][\w-]{0,100})")
#: A quoted value ends at a quote that no backslash precedes, or, if there is none, at any such quote. There is only one
#: way to read a backslash at a time; otherwise, the time taken would be exponential.
_VALUE: Final = re.compile(
    r"""[A-Za-z]{0,2}(?P<long>\"{3}|'{3})(?s:(?!(?P=long)).){0,10000}?(?P=long)"""
    r"""|[A-Za-z]{0,2}(?P<short>\\?["'])(?:(?:(?!(?P=short))(?:\\.|[^\\\n])){0,10000}?|(?:(?!(?P=short))[^\n]){0,10000}?)(?P=short)"""
    r"""|[^\s"'`,;()\[\]{}&<>\\]{4,}""",
)


#: Names of secrets that are also common words.
_COMMON: Final = frozenset({"pass", "auth", "bearer", "cookie", "cookies"})


class Redaction:
    """Decides which values are secret, and removes them.

    Parameters
    ----------
    names : iterable of str
        Name patterns, with ``*``, ``?`` and ``[...]``. They are compared as those of `SECRET_NAMES` are written, which
        ``apiKey`` and ``API-KEY`` need not be. If empty, nothing is redacted.
    """

    def __init__(self, names: Iterable[str] = SECRET_NAMES) -> None:
        patterns = dict.fromkeys(written for name in names for written in (name.lower(), _in_words(name)))
        self._names = re.compile("|".join(map(translate, patterns))) if patterns else None
        self._known: dict[str, bool] = {}

    def is_secret(self, name: str) -> bool:
        """Whether values with this name are redacted."""
        known = self._known.get(name)
        if known is None:
            plain = name if name.isascii() else _without_disguise(name)
            known = self._names is not None and self._names.match(_in_words(plain)) is not None
            if len(self._known) < 10_000 and len(name) < 200:
                self._known[name] = known
        return known

    def mentions_secret(self, text: str) -> bool:
        """Whether a text for people asks for a secret: whether a word, or two adjacent ones, match a name."""
        words = [word for word in re.findall(r"[^\W_]+", _without_disguise(text)) if word.lower() not in _COMMON]
        pairs = (f"{one}_{next_one}" for one, next_one in pairwise(words))
        return any(map(self.is_secret, (*words, *pairs)))

    def call(self, call: ToolCall) -> tuple[ToolCall, frozenset[str]]:
        """Return the redacted call, with its original digest, and the secrets that it contained."""
        secrets = self.secrets(call.arguments)
        if self._names is None:
            return call, secrets
        arguments = self._arguments(call.arguments, secrets)
        if arguments is call.arguments:
            return call, secrets
        return replace(call, arguments=arguments, known_digest=call.digest), secrets

    def answer(self, request: ApprovalRequest, secrets: frozenset[str] = frozenset()) -> ApprovalRequest:
        """Return the request with its decision and outcome redacted.

        Parameters
        ----------
        request : ApprovalRequest
            A request.
        secrets : frozenset of str
            The secrets that `call` returned.
        """
        decision, outcome = request.decision, request.outcome
        says_something = decision or request.votes or (outcome and (outcome.error or outcome.questions))
        if self._names is None or not says_something:
            return request
        if decision is not None:
            edited = decision.arguments
            if edited is not None:
                secrets = secrets | self.secrets(edited)
                kept = self._arguments(edited, secrets)
                if kept is not edited:
                    digest = request.effective_call.digest
                    decision = replace(decision, arguments=kept, edited_digest=digest)
            decision = replace(decision, reason=self.text(decision.reason, secrets))
        if outcome is not None and outcome.error:
            outcome = replace(outcome, error=self.error(outcome.error, secrets))
        if outcome is not None and outcome.questions:
            outcome = replace(outcome, questions=tuple(map(self._question, outcome.questions)))
        votes = tuple(replace(vote, reason=self.text(vote.reason, secrets)) for vote in request.votes)
        return replace(request, votes=votes, decision=decision, outcome=outcome)

    def request(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return the request, entirely redacted."""
        call, secrets = self.call(request.call)
        return replace(self.answer(request, secrets), call=call)

    def question(self, asked: OpenQuestion, answer: QuestionAnswer, *, at: datetime) -> QuestionRecord:
        """Return the redacted record of a server's question and its answer.

        A value is kept only if nothing indicates a secret, by the configured or the default names: not its name, title
        or description, nor, for free text, the message, since people type passwords into any form. Of a URL, the part
        before its query is kept.

        Parameters
        ----------
        asked : OpenQuestion
            The question.
        answer : QuestionAnswer
            The answer to the server.
        at : datetime
            Time of the answer.
        """
        question = asked.question
        properties = question.schema.get("properties")
        fields = properties if isinstance(properties, dict) else {}
        usual = Redaction()
        content = tuple(
            (name, REDACTED if self._tells_of_secret(name, fields.get(name), question.message, usual) else value)
            for name, value in answer.content.items()
        )
        record = QuestionRecord(
            mode=question.mode,
            message=question.message,
            url=re.split(r"[?#]", question.url, maxsplit=1)[0],
            action=answer.action,
            content=content,
            reviewer=answer.reviewer,
            asked_at=asked.asked_at,
            answered_at=at,
        )
        return self._question(record)

    def _tells_of_secret(self, name: str, described: JsonValue, message: str, usual: Redaction) -> bool:
        field = described if isinstance(described, dict) else {}
        is_free = "enum" not in field and field.get("type") not in ("boolean", "array")
        title = str(field.get("title", ""))
        prose = (title, str(field.get("description", "")), message if is_free else "")
        return any(
            names.is_secret(name) or names.is_secret(title) or any(map(names.mentions_secret, prose))
            for names in (self, usual)
        )

    def _question(self, record: QuestionRecord) -> QuestionRecord:
        content = tuple(
            (name, REDACTED if self.is_secret(name) else self.text(value) if isinstance(value, str) else value)
            for name, value in record.content
        )
        return replace(record, message=self.text(record.message), content=content)

    def text(self, text: str, secrets: Collection[str] = ()) -> str:
        """Return a text without these secrets, and without anything that looks like one."""
        return self._text(text, _longest_first(secrets))

    def error(self, text: str, secrets: Collection[str] = ()) -> str:
        """Return an error's text, which may end in the middle of one of these secrets, as `text` does."""
        return _without_beginnings(self.text(text, secrets), secrets)

    def value(self, value: JsonValue, secrets: Collection[str] = ()) -> JsonValue:
        """Return a value without those of secret names within it, and its texts as `text` does."""
        return value if self._names is None else self._value(value, _longest_first(secrets))

    def _text(self, text: str, secrets: Sequence[str]) -> str:
        """Return a text without secrets, given those that are known, longest first."""
        if not text or self._names is None:
            return text
        if len(secrets) > _MOST_SECRETS:
            return REDACTED
        for secret in secrets:
            text = text.replace(secret, REDACTED)
        if ":" in text or "=" in text:
            text = _IN_ADDRESS.sub(rf"\1{REDACTED}", text)
            text = _HEADER.sub(self._without_value, text)
            text = self._without_values(_NAMED, text)
        if "-" in text:
            text = self._without_values(_OPTION, text)
            text = self._without_words(text)
        if "eyJ" in text:
            text = _WEB_TOKEN.sub(rf"\1{REDACTED}", text)
        return _SCHEME.sub(rf"\1{REDACTED}", _TOKENS.sub(REDACTED, text))

    def _without_values(self, named: re.Pattern[str], text: str) -> str:
        """Return a text without the values of secret names in one notation."""
        pieces: list[str] = []
        place = 0
        for found in named.finditer(text):
            if found.start() < place or not self.is_secret(found[1]):
                continue
            scheme = _SCHEMES.match(text, found.end())
            value = _VALUE.match(text, found.end() if scheme is None else scheme.end())
            if value is None or _BEFORE_SECRET.match(text, value.start()):
                continue  # `Authorization: Digest [redacted]`
            quote = value["long"] or value["short"] or ""
            pieces += [text[place : value.start()], quote, REDACTED, quote]
            place = value.end()
        return "".join([*pieces, text[place:]])

    def _without_value(self, header: re.Match[str]) -> str:
        """Return a header without its value, but with its authentication scheme."""
        if not self.is_secret(header["name"]):
            return header[0]
        return header[0][: header.start("value") - header.start()] + REDACTED

    def _without_words(self, text: str) -> str:
        """Return a text without the secrets in its command lines, if passwords are redacted."""
        if not self.is_secret("password"):
            return text
        pieces: list[str] = []
        place = 0
        for start, end in secrets_in_text(text):
            pieces += [text[place:start], REDACTED]
            place = end
        return "".join([*pieces, text[place:]])

    def _command(self, words: list[JsonValue]) -> list[JsonValue]:
        """Return a list without its secrets if it is a command, and passwords are redacted."""
        if not self.is_secret("password") or not all(isinstance(word, str) for word in words):
            return words
        kept = [str(word) for word in words]
        for place, start in secrets_in_words(kept):
            kept[place] = kept[place][:start] + REDACTED
        return list(kept)

    def secrets(self, arguments: Mapping[str, JsonValue]) -> frozenset[str]:
        """Return the values of secret names in a call's arguments, as texts to be searched for elsewhere."""
        if self._names is None:
            return frozenset()
        found: set[str] = set()
        rest: list[tuple[bool, JsonValue]] = [(False, dict(arguments))]
        while rest:
            is_secret, value = rest.pop()
            if isinstance(value, dict):
                rest.extend((is_secret or self._is_secret_in(name, value), item) for name, item in value.items())
            elif isinstance(value, list):
                named = self._values_of_options(value)
                rest.extend((is_secret or place in named, item) for place, item in enumerate(value))
            elif is_secret and isinstance(value, str | int | float) and not isinstance(value, bool):
                found.add(str(value))
        return frozenset(secret for secret in found if len(secret) >= _SHORTEST and secret != REDACTED)

    def _values_of_options(self, words: list[JsonValue]) -> frozenset[int]:
        """Return the indices of the words of a command that are values of options such as ``--password``."""
        options = [_OPTION_ALONE.fullmatch(word) if isinstance(word, str) else None for word in words[:-1]]
        return frozenset(
            place
            for place, option in enumerate(options, 1)
            if option and self.is_secret(option[1]) and not str(words[place]).startswith("-")
        )

    def _is_secret_in(self, name: str, holder: Mapping[str, JsonValue]) -> bool:
        """Whether a key's value is secret; in `{"name": "API_KEY", "value": …}`, that of `value` is."""
        if self.is_secret(name):
            return True
        named = holder.get("name", holder.get("key"))
        return name == "value" and isinstance(named, str) and self.is_secret(named)

    def _arguments(self, arguments: Mapping[str, JsonValue], secrets: frozenset[str]) -> Mapping[str, JsonValue]:
        kept = self._value(dict(arguments), _longest_first(secrets))
        return arguments if kept == arguments or not isinstance(kept, dict) else kept

    def _value(self, value: JsonValue, secrets: Sequence[str]) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, secrets)
        if isinstance(value, list):
            kept = [self._value(item, secrets) for item in value]
            for place in self._values_of_options(value):
                kept[place] = REDACTED
            return self._command(kept)
        if isinstance(value, dict):
            return {
                name: _hidden(item) if self._is_secret_in(name, value) else self._value(item, secrets)
                for name, item in value.items()
            }
        return value


def _in_words(name: str) -> str:
    """Return a name in lower case, with underscores between words."""
    return _WORDS.sub("_", name).replace("-", "_").replace(" ", "_").lower()


def _without_disguise(text: str) -> str:
    """Return a text without invisible characters, and with letters in their plain forms."""
    return "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")


def _hidden(value: JsonValue) -> JsonValue:
    """Return the placeholder for a secret."""
    return value if value is None or isinstance(value, bool) or value in ("", [], {}) else REDACTED


def _longest_first(secrets: Iterable[str]) -> Sequence[str]:
    """Return secrets in an order in which none is found within another one."""
    return sorted(secrets, key=len, reverse=True)


def _without_beginnings(text: str, secrets: Collection[str]) -> str:
    """Return a possibly truncated text without a partial secret at its end."""
    if text == REDACTED:
        return text
    for secret in secrets:
        for size in range(min(len(secret), len(text)), _SHORTEST - 1, -1):
            if text.endswith(secret[:size]):
                return text[: len(text) - size] + REDACTED
    return text
