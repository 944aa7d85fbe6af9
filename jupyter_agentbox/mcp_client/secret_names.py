"""Recognizes secrets by the names of variables, headers and parameters in the configuration of servers.

`is_secret` is for logs, and hides whatever might be one. What an approver sees hides less, because the value of a
variable or header can decide what a server does. Arguments of calls have other names: see `core.redaction`.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"TOKEN|KEY|SECRET|PASS|PWD|AUTH|CRED|COOKIE|SESSION", re.IGNORECASE)
_PLAIN_VARIABLE: Final = re.compile(r"[A-Z0-9_]+")
#: Ending of a secret's name, possibly followed by a number or a place of use.
_SECRET_END: Final = re.compile(
    r"((\A|_)(TOKENS?|KEYS?|SECRETS?|PASS|PWD|COOKIES?|CREDENTIALS?|AUTH)|PASSWORD|PASSWD|PASSPHRASE|APIKEY|ACCESS_KEY_ID"
    r"|SECRET_KEY_BASE)(_(\d+|PROD|PRODUCTION|STAGING|DEV|TEST|RO|RW))?\Z"
)
#: Ending of a header's name whose value is a secret, with underscores in place of hyphens.
_SECRET_HEADER_END: Final = re.compile(
    r"(\A|_)(AUTHORIZATION|AUTH|TOKENS?|KEYS?|SECRETS?|PASS|PWD|PASSWORD|PASSPHRASE|COOKIE2?|CREDENTIALS?|SESSION(_?ID)?"
    r"|JWT|APIKEY)\Z"
)
#: Variables with files that can specify a program to run.
_FILES: Final = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
#: Beginnings of variables whose values are code or configuration that programs interpret: shell functions, git
#: configuration, and what linkers and interpreters load.
_OBEYED: Final = re.compile(r"BASH|ENV|GIT_(CONFIG|SSH|EXEC|PROXY|EDITOR|TEMPLATE)|LD_|DYLD_|PYTHON|PERL|RUBY|LUA")
#: Endings of such variables: programs and their options, files and directories.
_OBEYED_END: Final = re.compile(
    r"ASKPASS\Z|(\A|_)(COMMANDS?|CMD|EXEC|EXECUTABLE|PROCESS|PROGRAM|SHELL|SCRIPT|HOOKS?|HELPERS?|WRAPPER|EDITOR|PAGER"
    r"|BROWSER|PATH|FILE|DIR|HOME|SOCK|CONFIG|OPTIONS|OPTS|FLAGS|ARGS|PROVIDER|BACKEND|PLUGINS?|MODULES?|LIBRARY"
    r"|PRELOAD)\Z|\A(OLD)?PWD\Z"
)


def is_secret(name: str) -> bool:
    """Whether values with this name must not appear in logs."""
    return _WORD.search(name) is not None


def is_secret_header(name: str) -> bool:
    """Whether a header's value may be hidden from the approver: its name is, or ends with, a word for a secret.

    Names that merely contain one can steer the server: ``X-Bypass-Confirmation``, ``X-Author``.
    """
    return _SECRET_HEADER_END.search(name.upper().replace("-", "_")) is not None


def is_client_secret(name: str) -> bool:
    """Whether values with this name in OAuth settings are an OAuth client's secret."""
    return name in ("clientSecret", "CLIENT_SECRET")


def is_credential_variable(name: str) -> bool:
    """Whether a variable passed to a server is hidden from kernels.

    Its name is well-formed and indicates a secret, and no known program interprets it.
    """
    is_obeyed = _OBEYED.match(name) or _OBEYED_END.search(name)
    return _PLAIN_VARIABLE.fullmatch(name) is not None and is_secret(name) and not is_obeyed


def may_hide_variable(name: str) -> bool:
    """Whether a variable's value may be hidden from the approver, because it does not affect what runs.

    Its name must end with a word for a secret. Names that merely contain one have other uses, too: the address of a
    service that starts programs (``DBUS_SESSION_BUS_ADDRESS``), or a file for the keys of connections
    (``SSLKEYLOGFILE``).
    """
    is_named_so = _SECRET_END.search(name) is not None and name not in _FILES
    return is_named_so and is_credential_variable(name)
