"""Names of variables, headers and parameters whose values are secrets, as far as a name tells."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"TOKEN|KEY|SECRET|PASS|PWD|AUTH|CRED|COOKIE|SESSION", re.IGNORECASE)
_PLAIN_VARIABLE: Final = re.compile(r"[A-Z0-9_]+")
#: What the name of a secret ends with, but for a number or a place where it is used.
_SECRET_END: Final = re.compile(
    r"((\A|_)(TOKENS?|KEYS?|SECRETS?|PASS|PWD|COOKIES?|CREDENTIALS?|AUTH)|PASSWORD|PASSWD|PASSPHRASE|APIKEY|ACCESS_KEY_ID"
    r"|SECRET_KEY_BASE)(_(\d+|PROD|PRODUCTION|STAGING|DEV|TEST|RO|RW))?\Z"
)
#: Names of files that can name a program.
_FILES: Final = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
#: Variables whose values are code, or configuration that programs obey: functions of shells, the configuration of git,
#: and what linkers and interpreters load. By how their names begin.
_OBEYED: Final = re.compile(r"BASH|ENV|GIT_(CONFIG|SSH|EXEC|PROXY|EDITOR|TEMPLATE)|LD_|DYLD_|PYTHON|PERL|RUBY|LUA")
#: By how they end: programs and their options, files and directories.
_OBEYED_END: Final = re.compile(
    r"ASKPASS\Z|(\A|_)(COMMANDS?|CMD|EXEC|EXECUTABLE|PROCESS|PROGRAM|SHELL|SCRIPT|HOOKS?|HELPERS?|WRAPPER|EDITOR|PAGER"
    r"|BROWSER|PATH|FILE|DIR|HOME|SOCK|CONFIG|OPTIONS|OPTS|FLAGS|ARGS|PROVIDER|BACKEND|PLUGINS?|MODULES?|LIBRARY"
    r"|PRELOAD)\Z|\A(OLD)?PWD\Z"
)


def is_secret(name: str) -> bool:
    """Whether a value of this name has to be kept out of logs."""
    return _WORD.search(name) is not None


def is_client_secret(name: str) -> bool:
    """Whether a value of this name, in what an entry says about signing in, is the secret of an OAuth client."""
    return name in ("clientSecret", "CLIENT_SECRET")


def is_credential_variable(name: str) -> bool:
    """Whether a variable that a server is given is kept from kernels.

    Its name is plain and tells of a secret, and no program is known that would obey it.
    """
    is_obeyed = _OBEYED.match(name) or _OBEYED_END.search(name)
    return _PLAIN_VARIABLE.fullmatch(name) is not None and is_secret(name) and not is_obeyed


def may_hide_variable(name: str) -> bool:
    """Whether a variable's value may be hidden from the person who approves it: it decides nothing of what runs.

    Its name has to end with the word for a secret. Names that only have such a word in them are of other things, too:
    of an address at which programs are started (``DBUS_SESSION_BUS_ADDRESS``), of a file for the keys of connections
    (``SSLKEYLOGFILE``).
    """
    is_named_so = _SECRET_END.search(name) is not None and name not in _FILES
    return is_named_so and is_credential_variable(name)
